//! What the rows of a root table belong to: ids of their own, of resources and of scopes, numbered anew.
//!
//! Each resource, and each scope in it, gets an id, also if it has no attributes: readers tell where one ends by its id
//! alone.

use arrow::array::ArrayRef;
use arrow::datatypes::Fields;
use hashbrown::HashMap;
use otel_arrow_dfe_pdata::schema::consts;

use super::idmap::{self, IdMap};
use super::table::Maps;
use crate::encode::error::EncodeError;
use crate::encode::groups::Groups;
use crate::encode::table::Table;

/// New ids for each part of a batch, and the columns of those of resources and scopes.
#[derive(Debug, Default)]
pub(super) struct Root {
    pub(super) ids: Maps,
    pub(super) resources: Maps,
    pub(super) scopes: Maps,
    resource_ids: Vec<u32>,
    scope_ids: Vec<u32>,
    next_resource: u32,
    next_scope: u32,
}

/// New ids of groups, as they come up.
struct GroupMap {
    start: u32,
    map: HashMap<u32, Vec<u32>>,
    is_sequence: bool,
}

impl GroupMap {
    fn new(start: u32) -> Self {
        Self { start, map: HashMap::default(), is_sequence: true }
    }

    fn add(&mut self, old: Option<u32>, new: u32) {
        self.is_sequence &= old == Some(new - self.start);
        if let Some(old) = old {
            self.map.entry(old).or_default().push(new);
        }
    }

    fn finish(self, next: u32) -> IdMap {
        if self.is_sequence {
            return IdMap::Shifted { start: self.start, count: next - self.start };
        }
        IdMap::Groups(self.map)
    }
}

impl Root {
    /// Whether there has been a batch of one part.
    pub(super) fn is_known(&self) -> bool {
        self.ids.len() == 1
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Numbers resources and scopes of a part. Gives the order in which its rows are sent.
    pub(super) fn part(&mut self, table: &Table<'_>, fields: &Fields) -> Result<Option<Vec<u32>>, EncodeError> {
        let groups = Groups::new(table, fields)?;
        let (mut resources, mut scopes) = (GroupMap::new(self.next_resource), GroupMap::new(self.next_scope));
        for (first, of_resource) in groups.by_resource() {
            resources.add(groups.resources.get(first), self.next_resource);
            for (first, places) in groups.by_scope(of_resource) {
                scopes.add(groups.scopes.get(first), self.next_scope);
                self.resource_ids.resize(self.resource_ids.len() + places.len(), self.next_resource);
                self.scope_ids.resize(self.scope_ids.len() + places.len(), self.next_scope);
                self.next_scope += 1;
            }
            self.next_resource += 1;
        }
        self.resources.push(resources.finish(self.next_resource));
        self.scopes.push(scopes.finish(self.next_scope));
        Ok(groups.order)
    }

    /// The columns of the ids of resources and scopes.
    pub(super) fn columns(&mut self) -> Vec<(&'static [&'static str], ArrayRef)> {
        let column = |ids: &mut Vec<u32>| {
            idmap::differences(ids, |_| true);
            idmap::column(std::mem::take(ids), None, true)
        };
        vec![
            (&[consts::RESOURCE, consts::ID], column(&mut self.resource_ids)),
            (&[consts::SCOPE, consts::ID], column(&mut self.scope_ids)),
        ]
    }
}
