//! Names as small numbers: a million tasks share a few kinds and subjects.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Gives each name a number, for good.
#[derive(Debug, Default)]
pub struct Names {
    numbers: BTreeMap<Arc<str>, u32>,
    names: Vec<Arc<str>>,
}

impl Names {
    /// The number of a name.
    pub fn intern(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// The number of a name that has one.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// The name of a number, to keep.
    pub fn shared(&self, number: u32) -> Arc<str> {
        self.names.get(number as usize).cloned().unwrap_or_default()
    }

    /// The name of a number.
    pub fn get(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |name| name)
    }
}
