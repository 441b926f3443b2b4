//! What evaluating may cost: steps of work, and bytes of values that are made. One expression has its own limit; those of
//! one object share another, which is handed in with the names ([`super::Scope::within`]).
//!
//! Bytes are counted when something is made and never given back, so what is in memory at once is less than what was counted.
//! Everything whose cost grows with a text, a list or a document is counted before it is done.

use std::cell::Cell;

use super::Mistake;

/// Bytes of a value in a list or a document.
pub(super) const VALUE_BYTES: usize = 32;
/// Bytes of an entry of a map, without its key.
pub(super) const ENTRY_BYTES: usize = 96;
/// Bytes that are read or written in one step.
const STEP_BYTES: usize = 64;

/// Steps of work and bytes of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Steps: an operator, an element, 64 bytes of text.
    pub steps: u64,
    /// Bytes of what is made.
    pub bytes: u64,
}

impl Cost {
    /// What one expression may cost: some ten milliseconds.
    pub const OF_EXPRESSION: Self = Self { steps: 100_000, bytes: 8 * 1024 * 1024 };
    /// What all expressions about one object may cost each time it is looked at. Once one of them cost too much, the others may cost
    /// nothing.
    pub const OF_OBJECT: Self = Self { steps: 500_000, bytes: 32 * 1024 * 1024 };
}

/// What may still be spent.
#[derive(Debug)]
pub struct Budget {
    whole: Cost,
    left: Cell<Cost>,
    is_exceeded: Cell<bool>,
}

impl Budget {
    /// A budget of which nothing is spent yet.
    pub const fn new(whole: Cost) -> Self {
        Self { whole, left: Cell::new(whole), is_exceeded: Cell::new(false) }
    }

    /// What may be spent on one object.
    pub const fn of_object() -> Self {
        Self::new(Cost::OF_OBJECT)
    }

    /// What was spent.
    pub fn spent(&self) -> Cost {
        let left = self.left.get();
        Cost { steps: self.whole.steps - left.steps, bytes: self.whole.bytes - left.bytes }
    }

    /// True if an expression was stopped because of what it or all of them cost.
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.get()
    }

    /// Spends it, or says what there is too little of. Nothing is left then: whoever forgives the mistake cannot go on.
    fn spend(&self, cost: Cost) -> Result<(), String> {
        let left = self.left.get();
        let rest = (left.steps.checked_sub(cost.steps), left.bytes.checked_sub(cost.bytes));
        let (Some(steps), Some(bytes)) = rest else {
            self.left.set(Cost::default());
            self.is_exceeded.set(true);
            return Err(match rest.0 {
                None => format!("more than {} steps", self.whole.steps),
                Some(_) => format!("more than {} bytes of memory", self.whole.bytes),
            });
        };
        self.left.set(Cost { steps, bytes });
        Ok(())
    }
}

/// Counts what one expression costs.
pub(super) struct Meter<'b> {
    own: Budget,
    shared: Option<&'b Budget>,
}

impl<'b> Meter<'b> {
    /// For one expression, out of what is shared, if anything is.
    pub const fn new(shared: Option<&'b Budget>) -> Self {
        Self { own: Budget::new(Cost::OF_EXPRESSION), shared }
    }

    /// Takes so many steps, or says that there are none left.
    pub fn take(&self, at: usize, steps: usize) -> Result<(), Mistake> {
        self.spend(at, Cost { steps: steps as u64, bytes: 0 })
    }

    /// Takes the steps of reading so many bytes.
    pub fn read(&self, at: usize, bytes: usize) -> Result<(), Mistake> {
        self.take(at, bytes / STEP_BYTES)
    }

    /// Takes the memory and the steps of making something of so many bytes.
    pub fn make(&self, at: usize, bytes: usize) -> Result<(), Mistake> {
        self.spend(at, Cost { steps: (bytes / STEP_BYTES) as u64, bytes: bytes as u64 })
    }

    /// True if there is nothing left: no mistake is forgiven then.
    pub fn is_exceeded(&self) -> bool {
        self.own.is_exceeded() || self.shared.is_some_and(Budget::is_exceeded)
    }

    fn spend(&self, at: usize, cost: Cost) -> Result<(), Mistake> {
        if self.shared.is_some_and(Budget::is_exceeded) {
            return Err(Mistake::new(
                at,
                "is not evaluated: another expression about this object costs too much",
            ));
        }
        let own = self.own.spend(cost).map_err(|much| {
            if let Some(shared) = self.shared {
                shared.is_exceeded.set(true);
            }
            format!("takes {much}; look at less, or make it simpler")
        });
        let shared = self.shared.map_or(Ok(()), |shared| shared.spend(cost)).map_err(|much| {
            format!(
                "the expressions about one object take {much} together; look at less, or make them simpler"
            )
        });
        own.and(shared).map_err(|message| Mistake::new(at, message))
    }
}
