//! Rows of a root table by resource and scope.
//!
//! Rows are taken as they come as long as no resource, and no scope within one, comes up again later. If one does, its
//! rows are put behind its first ones, each in their order: what belongs to one scope is never reordered.

use std::ops::Range;

use arrow::array::{StringArray, StructArray, UInt32Array};
use arrow::datatypes::Fields;
use hashbrown::HashMap;
use otel_arrow_dfe_pdata::schema::consts;

use super::error::EncodeError;
use super::ids::{self, Ids, field};
use super::table::{Column, Table, number, value};

/// Ids of a structure that may have none.
#[derive(Debug)]
pub(crate) struct GroupIds(Option<Ids<'static>>);

impl GroupIds {
    /// The id of the group that a row is of.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<u32> {
        self.0.as_ref().and_then(|ids| ids.get(row))
    }
}

/// The order of rows and where resources and scopes begin in it.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) resources: GroupIds,
    pub(crate) scopes: GroupIds,
    /// Rows in their order, unless that is the one in the table.
    pub(crate) order: Option<Vec<u32>>,
    /// Places of the rows of each scope.
    scope_groups: Vec<Range<usize>>,
    /// For each resource its scopes.
    resource_groups: Vec<Range<usize>>,
}

/// What rows of one resource, and of one scope in it, have in common.
struct Marks<'a> {
    resource: GroupMarks<'a>,
    scope: GroupMarks<'a>,
}

/// The id and, as rows may have none, everything else that is said of a group.
struct GroupMarks<'a> {
    ids: GroupIds,
    structure: Option<&'a StructArray>,
    dropped: Option<&'a UInt32Array>,
    texts: [Option<Column<'a, StringArray>>; 3],
}

/// The value of all marks.
type Mark<'a> = (Option<u32>, Option<u32>, [Option<&'a str>; 3]);

impl<'a> GroupMarks<'a> {
    fn new(root: &Table<'a>, fields: &Fields, name: &'static str) -> Result<Self, EncodeError> {
        let (table, structure) = root.structure(name)?;
        let ids = ids::own(&table, field(fields, &[name, consts::ID]))?;
        let ids = ids.map(|ids| Ids { values: ids.values.into_owned().into(), nulls: ids.nulls });
        let is_scope = name == consts::SCOPE;
        Ok(Self {
            ids: GroupIds(ids),
            structure,
            dropped: table.plain(consts::DROPPED_ATTRIBUTES_COUNT, "numbers of 32 bits")?,
            texts: [
                if is_scope { root } else { &table }.column(consts::SCHEMA_URL, "texts")?,
                table.column(consts::NAME, "texts")?,
                table.column(consts::VERSION, "texts")?,
            ],
        })
    }

    fn mark(&self, row: usize) -> Mark<'a> {
        // What stands in a structure that is null has no meaning, but no other one either.
        let [url, name, version] = &self.texts;
        let text = |column: &Option<Column<'a, StringArray>>| value(column, row).filter(|text| !text.is_empty());
        let dropped = number(self.dropped, row).filter(|dropped| *dropped > 0);
        (self.ids.get(row), dropped, [text(url), text(name), text(version)])
    }

    /// Whether a row is of the group of the row before it.
    fn is_same(&self, row: usize) -> bool {
        if self.structure.is_none() && self.texts[0].is_none() {
            return true;
        }
        self.ids.get(row) == self.ids.get(row - 1)
            && number(self.dropped, row) == number(self.dropped, row - 1)
            && self.texts.iter().all(|text| match text {
                None => true,
                Some(text) => {
                    let entry = text.entry(row);
                    entry.is_some() && entry == text.entry(row - 1) || text.get(row) == text.get(row - 1)
                }
            })
    }
}

impl Groups {
    pub(crate) fn new(root: &Table<'_>, fields: &Fields) -> Result<Self, EncodeError> {
        let marks = Marks {
            resource: GroupMarks::new(root, fields, consts::RESOURCE)?,
            scope: GroupMarks::new(root, fields, consts::SCOPE)?,
        };
        let rows = root.rows();
        // Runs of rows of one scope, with whether a new resource begins.
        let mut runs: Vec<(Range<usize>, bool)> = Vec::new();
        for row in 0..rows {
            let new_resource = row == 0 || !marks.resource.is_same(row);
            if new_resource || !marks.scope.is_same(row) {
                runs.push((row..row, new_resource));
            }
            if let Some((run, _)) = runs.last_mut() {
                run.end = row + 1;
            }
        }
        let mut groups = Self {
            resources: GroupIds(None),
            scopes: GroupIds(None),
            order: None,
            scope_groups: Vec::new(),
            resource_groups: Vec::new(),
        };
        groups.arrange(&marks, runs, rows);
        let Marks { resource, scope } = marks;
        (groups.resources, groups.scopes) = (resource.ids, scope.ids);
        Ok(groups)
    }

    /// Puts runs of the same group behind each other.
    fn arrange(&mut self, marks: &Marks<'_>, runs: Vec<(Range<usize>, bool)>, rows: usize) {
        let mut resources: HashMap<Mark<'_>, usize> = HashMap::default();
        // For each resource its scopes, and for each of them its runs.
        let mut members: Vec<Vec<Vec<Range<usize>>>> = Vec::new();
        let mut scopes: HashMap<(usize, Mark<'_>), usize> = HashMap::default();
        let mut resource = 0;
        let mut is_moved = false;
        for (run, new_resource) in runs {
            if new_resource {
                let known = members.len();
                resource = *resources.entry(marks.resource.mark(run.start)).or_insert(known);
                match resource == known {
                    true => members.push(Vec::new()),
                    false => is_moved = true,
                }
            }
            let Some(of_resource) = members.get_mut(resource) else { continue };
            let known = of_resource.len();
            let scope = *scopes.entry((resource, marks.scope.mark(run.start))).or_insert(known);
            match of_resource.get_mut(scope) {
                None => of_resource.push(vec![run]),
                Some(runs) => {
                    is_moved = true;
                    runs.push(run);
                }
            }
        }
        let mut order = Vec::with_capacity(if is_moved { rows } else { 0 });
        let mut place = 0;
        for of_resource in members {
            let first = self.scope_groups.len();
            for runs in of_resource {
                let start = place;
                for run in runs {
                    place += run.len();
                    if is_moved {
                        order.extend(run.map(|row| row as u32));
                    }
                }
                self.scope_groups.push(start..place);
            }
            self.resource_groups.push(first..self.scope_groups.len());
        }
        self.order = is_moved.then_some(order);
    }

    /// For each resource its first row and its scopes.
    pub(crate) fn by_resource(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        self.resource_groups.iter().map(|scopes| {
            let first = self.scope_groups.get(scopes.start).map_or(0, |places| places.start);
            (self.row(first), scopes.clone())
        })
    }

    /// For each of these scopes its first row and the places of its rows.
    pub(crate) fn by_scope(&self, scopes: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let scopes = self.scope_groups.get(scopes).unwrap_or_default();
        scopes.iter().map(|places| (self.row(places.start), places.clone()))
    }

    /// The row at a place.
    #[inline]
    pub(crate) fn row(&self, place: usize) -> usize {
        self.order.as_ref().map_or(place, |order| order[place] as usize)
    }
}
