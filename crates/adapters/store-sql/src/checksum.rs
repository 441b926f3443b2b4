//! What proves that rows and header are what was written.

use crc32fast::Hasher;
use muster_ports::store::{Header, Revision, Row};

/// The checksum of everything in a row.
pub(crate) fn of(row: &Row<'_>) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&row.revision.0.to_le_bytes());
    hasher.update(&row.at.0.to_le_bytes());
    hasher.update(&row.splice.to_le_bytes());
    // The lengths keep the fields apart.
    hasher.update(&(row.resource.len() as u64).to_le_bytes());
    hasher.update(row.resource.as_bytes());
    hasher.update(&(row.path.len() as u64).to_le_bytes());
    hasher.update(row.path.as_bytes());
    hasher.update(&[u8::from(row.json.is_some())]);
    hasher.update(row.json.unwrap_or_default());
    hasher.finalize()
}

/// The header and what it says about all rows together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ledger {
    pub header: Header,
    /// How many rows there are.
    pub rows: u64,
    /// The sum of their checksums.
    pub digest: u64,
}

impl Ledger {
    pub fn add(&mut self, revision: Revision, crc: u32) {
        self.header.revision = self.header.revision.max(revision);
        self.rows += 1;
        self.digest = self.digest.wrapping_add(crc.into());
    }

    pub fn remove(&mut self, crc: u32) {
        self.rows = self.rows.wrapping_sub(1);
        self.digest = self.digest.wrapping_sub(crc.into());
    }

    pub fn compact(&mut self, upto: Revision) {
        self.header.compacted = self.header.compacted.max(upto);
    }

    /// The checksum of the ledger itself.
    pub fn seal(&self) -> u32 {
        let mut hasher = Hasher::new();
        for number in [self.header.revision.0, self.header.compacted.0, self.rows, self.digest] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use muster_ports::clock::Millis;

    use super::*;

    const ROW: Row<'_> = Row {
        revision: Revision(7),
        at: Millis(1_000),
        resource: "tasks",
        path: "a/b",
        splice: 3,
        json: Some(b"{}"),
    };

    #[test]
    fn every_field_of_a_row_counts() {
        let others = [
            Row { revision: Revision(8), ..ROW },
            Row { at: Millis(1_001), ..ROW },
            Row { resource: "tasksa", path: "/b", ..ROW },
            Row { path: "a/c", ..ROW },
            Row { splice: 4, ..ROW },
            Row { json: Some(b"{} "), ..ROW },
            Row { json: Some(b""), ..ROW },
            Row { json: None, ..ROW },
        ];
        for other in others {
            assert_ne!(of(&ROW), of(&other), "{other:?}");
        }
    }

    #[test]
    fn a_row_that_was_added_and_removed_leaves_only_its_revision() {
        let mut ledger = Ledger::default();
        ledger.add(Revision(3), 17);
        ledger.add(Revision(4), u32::MAX);
        ledger.remove(u32::MAX);
        ledger.remove(17);
        assert_eq!(
            ledger,
            Ledger { header: Header { revision: Revision(4), ..Header::default() }, rows: 0, digest: 0 }
        );
    }
}
