//! What is there, as far as watches have shown it: users choose from it, and it says when all has ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_sim::dice::Dice;
use parking_lot::Mutex;
use serde_json::Value;

/// Everything that is there. Clones see the same.
#[derive(Clone, Default)]
pub struct Census(Arc<Mutex<BTreeMap<(&'static str, String), Known>>>);

/// An object.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its state, if its kind has one.
    pub state: String,
    /// It belongs to a group or a schedule.
    pub is_owned: bool,
    /// Its user holds it back.
    pub is_suspended: bool,
}

impl Known {
    /// It never changes again.
    pub fn is_over(&self) -> bool {
        matches!(self.state.as_str(), "Succeeded" | "Failed" | "Canceled" | "Skipped")
    }

    /// It was asked for and has not ended. A user's own that was never submitted stays so.
    pub fn is_open(&self) -> bool {
        !self.is_over() && (self.is_owned || !self.is_suspended)
    }
}

impl Census {
    /// Takes in an object as it is now, or that it is gone.
    pub fn take(&self, plural: &'static str, object: &Value, is_gone: bool) {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let mut all = self.0.lock();
        if is_gone {
            all.remove(&(plural, name));
            return;
        }
        let known = Known {
            state: object["status"]["state"].as_str().unwrap_or_default().to_owned(),
            is_owned: !object["metadata"]["ownerReferences"].is_null(),
            is_suspended: object["spec"]["suspend"] == true,
        };
        all.insert((plural, name), known);
    }

    /// One of a kind that is as it should be, by chance.
    pub fn pick(
        &self,
        dice: &mut Dice,
        plural: &'static str,
        wanted: impl Fn(&Known) -> bool,
    ) -> Option<String> {
        let names = self.names(plural, wanted);
        dice.pick(&names).cloned()
    }

    /// Names of those of a kind that are as they should be.
    pub fn names(&self, plural: &'static str, wanted: impl Fn(&Known) -> bool) -> Vec<String> {
        let all = self.0.lock();
        let of_kind = all.range((plural, String::new())..).take_while(|((it, _), _)| *it == plural);
        of_kind.filter(|(_, known)| wanted(known)).map(|((_, name), _)| name.clone()).collect()
    }

    /// How many of a kind have not ended.
    pub fn open(&self, plural: &'static str) -> usize {
        self.names(plural, Known::is_open).len()
    }
}
