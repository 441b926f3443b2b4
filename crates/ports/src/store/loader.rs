//! Reads a log and folds its rows into the state they amount to.
//!
//! Two threads share the work of a start: one reads, checks and copies rows into parcels, the other one makes objects
//! of them and builds the maps.

use std::collections::HashSet;
use std::sync::{Arc, mpsc};
use std::{mem, panic, thread};

use super::key::ResourceName;
use super::log::{Header, Log, LogError, Row};
use super::object::{Change, Revision, Stored};
use super::state::State;
use crate::clock::Millis;

/// Parcels between the two threads.
const PARCELS: usize = 8;
/// A parcel is sent once it has this many rows,
const PARCEL_ROWS: usize = 1024;
/// or this many bytes.
const PARCEL_BYTES: usize = 1 << 20;

/// The state of a log, and rows in it that compaction left behind, in an order in which any first part can be
/// removed safely.
pub(super) fn load(log: &mut dyn Log) -> Result<(State, Vec<Revision>), LogError> {
    let mut loader = Loader::new(log.header()?);
    let loader = thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel::<Parcel>(PARCELS);
        let folding = scope.spawn(move || {
            for parcel in receiver {
                loader.fold_parcel(parcel);
            }
            loader
        });
        let mut parcel = Parcel::default();
        // A send fails only if the other thread panicked, which shows when it is joined.
        log.load(&mut |row| {
            parcel.push(row);
            if parcel.is_full() {
                drop(sender.send(mem::take(&mut parcel)));
            }
        })?;
        drop(sender.send(parcel));
        drop(sender);
        Ok(folding.join().unwrap_or_else(|panic| panic::resume_unwind(panic)))
    })?;
    Ok(loader.finish())
}

/// Some rows, copied.
#[derive(Default)]
struct Parcel {
    /// Resource and path of each row, one behind the other.
    names: String,
    /// The objects in the same way.
    bodies: Vec<u8>,
    rows: Vec<Packed>,
}

struct Packed {
    revision: Revision,
    at: Millis,
    /// Where in the names the resource ends,
    resource_end: usize,
    /// and the path behind it.
    path_end: usize,
    splice: u32,
    /// Where in the bodies the object ends; `None` is a deletion.
    body_end: Option<usize>,
}

impl Parcel {
    fn push(&mut self, row: Row<'_>) {
        self.names.push_str(row.resource);
        let resource_end = self.names.len();
        self.names.push_str(row.path);
        let path_end = self.names.len();
        let Row { revision, at, splice, json, .. } = row;
        self.bodies.extend_from_slice(json.unwrap_or_default());
        let body_end = json.map(|_| self.bodies.len());
        self.rows.push(Packed { revision, at, resource_end, path_end, splice, body_end });
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= PARCEL_ROWS || self.bodies.len() >= PARCEL_BYTES
    }
}

/// Takes rows in growing order of revision.
///
/// A row at or below the compaction point that was superseded there, or is a deletion, is a leftover: compaction
/// would have removed it, had the store lived longer.
struct Loader {
    state: State,
    header: Header,
    resources: HashSet<ResourceName>,
    leftovers: Vec<Revision>,
}

impl Loader {
    fn new(header: Header) -> Self {
        Self { state: State::new(header.compacted), header, resources: HashSet::new(), leftovers: Vec::new() }
    }

    fn finish(mut self) -> (State, Vec<Revision>) {
        self.state.revision = self.state.revision.max(self.header.revision);
        (self.state, self.leftovers)
    }

    fn fold_parcel(&mut self, parcel: Parcel) {
        let (mut start, mut body_start) = (0, 0);
        for row in parcel.rows {
            let resource = self.resource(&parcel.names[start..row.resource_end]);
            let path = &parcel.names[row.resource_end..row.path_end];
            start = row.path_end;
            let json = row.body_end.map(|end| &parcel.bodies[body_start..end]);
            body_start = row.body_end.unwrap_or(body_start);
            self.fold(&row, resource, path, json);
        }
    }

    fn fold(&mut self, row: &Packed, resource: ResourceName, path: &str, json: Option<&[u8]>) {
        debug_assert!(row.revision > self.state.revision, "rows come in growing order");
        self.state.revision = row.revision;
        let deleted = json.is_none();
        let (object, previous) = match json {
            Some(json) => {
                let object = Stored::from_row(path.into(), row.revision, row.splice, json);
                let previous = self.state.insert(&resource, object.clone());
                (object, previous)
            }
            None => match self.state.remove(&resource, path) {
                Some(previous) => (previous.restamped(row.revision), Some(previous)),
                None => return self.leftovers.push(row.revision),
            },
        };
        if row.revision > self.header.compacted {
            self.state.remember(Arc::new(Change { at: row.at, resource, object, previous, deleted }));
        } else {
            // The superseded version before its deletion: the other way round it would come back.
            self.leftovers.extend(previous.map(|previous| previous.revision));
            self.leftovers.extend(deleted.then_some(row.revision));
        }
    }

    /// One shared text per kind.
    fn resource(&mut self, name: &str) -> ResourceName {
        if let Some(known) = self.resources.get(name) {
            return known.clone();
        }
        let resource = ResourceName::new(name);
        self.resources.insert(resource.clone());
        resource
    }
}
