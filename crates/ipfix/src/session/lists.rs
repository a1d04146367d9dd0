//! Looks into the lists of a data set for the templates they need.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::admitted::Admitted;
use crate::context::MAX_LIST_DEPTH;
use crate::elements::DataType;
use crate::list::{Group, List, ListError, SubTemplates};
use crate::problem::Fault;
use crate::records::Records;
use crate::session::{Content, Session};
use crate::template::Template;

/// The search through the lists of one data set.
struct Search<'s> {
    session: &'s mut Session,
    out: &'s mut Admitted,
    content: &'s Content<'s>,
    /// The templates needed, by their id; `None` for those that are not known.
    found: HashMap<u16, Option<Arc<Template>>>,
    malformed: Option<ListError>,
}

impl Session {
    /// Finds the templates that lists in the records of a set need.
    pub(super) fn sub_templates(
        &mut self,
        template: &Template,
        records: &[u8],
        content: &Content<'_>,
        out: &mut Admitted,
    ) -> SubTemplates {
        if !template.has_lists() {
            return SubTemplates::default();
        }
        let mut search = Search { session: self, out, content, found: HashMap::default(), malformed: None };
        search.records(template, records, 0);
        let (found, malformed) = (search.found, search.malformed);
        if let Some(source) = malformed {
            let template_id = template.id();
            self.report(content.start, Fault::MalformedList { template_id, source }, out);
        }
        let mut unknown: Vec<u16> =
            found.iter().filter(|(_, template)| template.is_none()).map(|(id, _)| *id).collect();
        unknown.sort_unstable();
        for id in unknown {
            self.report(content.start, Fault::UnknownSubTemplate { id }, out);
        }
        SubTemplates::new(found.into_values().flatten().collect())
    }
}

impl Search<'_> {
    fn records(&mut self, template: &Template, bytes: &[u8], depth: u8) {
        for record in Records::new(template, bytes) {
            for (_, data_type, value) in template.lists().of(record.bytes()) {
                self.value(data_type, value, depth);
            }
        }
    }

    /// Looks into a value if it is a list. Every level looks at each of its bytes once, and the depth is limited.
    fn value(&mut self, data_type: DataType, value: &[u8], depth: u8) {
        if !data_type.is_list() || value.is_empty() || depth >= MAX_LIST_DEPTH {
            return;
        }
        match List::parse(data_type, value) {
            Ok(List::Basic(list)) => {
                let data_type = list.field().data_type();
                if data_type.is_list() {
                    for element in list.elements() {
                        self.value(data_type, element, depth + 1);
                    }
                }
            }
            Ok(List::SubTemplate(list)) => self.group(list.group(), depth + 1),
            Ok(List::SubTemplateMulti(list)) => {
                for group in list.groups() {
                    self.group(group, depth + 1);
                }
            }
            Err(error) => self.malformed = self.malformed.or(Some(error)),
        }
    }

    fn group(&mut self, group: Group<'_>, depth: u8) {
        let id = group.template_id;
        let template = if let Some(found) = self.found.get(&id) {
            found.clone()
        } else {
            let template = self.session.find_template(self.content.key(id), self.out);
            let _: Option<Option<Arc<Template>>> = self.found.insert(id, template.clone());
            template
        };
        if let Some(template) = template.filter(|template| template.has_lists()) {
            self.records(&template, group.bytes, depth);
        }
    }
}
