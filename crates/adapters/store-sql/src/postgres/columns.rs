//! The rows of an append as columns, which is how they are sent: one array each, however many rows.

use std::sync::Arc;

use muster_ports::store::{Change, Forget, Row};

use super::chain;
use super::session::Known;
use crate::checksum;

/// Rows as columns.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub revisions: Vec<i64>,
    pub ats: Vec<i64>,
    pub resources: Vec<&'a str>,
    pub paths: Vec<&'a str>,
    pub splices: Vec<i64>,
    pub crcs: Vec<i64>,
    pub jsons: Vec<Option<&'a [u8]>>,
    /// The chain behind them.
    pub chain: i64,
}

impl<'a> Columns<'a> {
    pub fn of(changes: &'a [Arc<Change>], chain: i64) -> Self {
        let mut columns = Self { chain, ..Self::default() };
        for change in changes {
            let row = Row::from(&**change);
            let crc = checksum::of(&row);
            columns.revisions.push(row.revision.0.cast_signed());
            columns.ats.push(row.at.0);
            columns.resources.push(row.resource);
            columns.paths.push(row.path);
            columns.splices.push(row.splice.into());
            columns.crcs.push(crc.into());
            columns.jsons.push(row.json);
            columns.chain = chain::link(columns.chain, crc);
        }
        columns
    }

    /// What is known once they are written on top of what is known.
    pub fn behind(&self, known: Known, forget: &Forget) -> Known {
        let last = self.revisions.last().copied().unwrap_or(known.revision);
        Known { revision: last.max(forget.given.0.cast_signed()), chain: self.chain }
    }
}
