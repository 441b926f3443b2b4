//! Places for what takes long: watches and files on their way in. There are only so many, and nobody can take all of them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::refusal::Refusal;

/// Places of one sort, which tokens share.
#[derive(Debug)]
pub struct Shares {
    /// What they are for, in the plural.
    what: &'static str,
    /// How many there are.
    total: usize,
    /// How many one token can have.
    of_one: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    by: HashMap<String, usize>,
}

/// A place that was taken. It is free again when this is dropped.
#[derive(Debug)]
pub struct Share {
    shares: Arc<Shares>,
    holder: String,
}

impl Shares {
    /// So many places, of which one token can have so many.
    pub fn new(what: &'static str, total: usize, of_one: usize) -> Arc<Self> {
        Arc::new(Self { what, total, of_one: of_one.clamp(1, total.max(1)), taken: Mutex::default() })
    }

    /// A place for somebody, if one is free for them.
    pub fn take(self: &Arc<Self>, holder: &str) -> Result<Share, Refusal> {
        let mut taken = self.taken.lock();
        let what = self.what;
        if taken.total >= self.total {
            return Err(Refusal::too_many(format!("too many {what} are open; close some and try again")));
        }
        let of_holder = taken.by.entry(holder.to_owned()).or_default();
        if *of_holder >= self.of_one {
            return Err(Refusal::too_many(format!(
                "\"{holder}\" has {of_holder} {what} open, which is as many as one token can have; close some and try again"
            )));
        }
        *of_holder += 1;
        taken.total += 1;
        Ok(Share { shares: self.clone(), holder: holder.to_owned() })
    }

    /// How many are taken.
    pub fn taken(&self) -> usize {
        self.taken.lock().total
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.taken.lock();
        taken.total -= 1;
        if let Some(of_holder) = taken.by.get_mut(&self.holder) {
            *of_holder -= 1;
            if *of_holder == 0 {
                taken.by.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_takes_its_share_and_others_the_rest_and_what_is_given_back_is_free() {
        let shares = Shares::new("watches", 3, 2);
        let first = shares.take("a").unwrap();
        let _second = shares.take("a").unwrap();
        assert!(shares.take("a").unwrap_err().to_string().contains("as many as one token can have"));
        let third = shares.take("b").unwrap();
        assert!(shares.take("c").unwrap_err().to_string().contains("too many watches are open"));
        assert_eq!(shares.taken(), 3);
        drop(third);
        drop(first);
        assert_eq!(shares.taken(), 1);
        assert!(shares.take("a").is_ok() && shares.take("c").is_ok());
    }
}
