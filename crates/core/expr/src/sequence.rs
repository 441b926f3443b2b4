//! Numbers handed out by macros: `${seq:8000}` becomes 8000, then 8001, and so on (seed 000, H57).
//!
//! One [`Sequences`] serves all texts of one attempt. Each starting number is a pool with a counter of its own. Within
//! one text a pool gives one number, however often it is named, so `--listen=${seq:8000} --announce=${seq:8000}` in one
//! argument agrees with itself; the next text gets the next number.
//!
//! Never fails: what is no macro stays as it is written. That is anything but digits between `${seq:` and `}`, a pool
//! beyond 2⁶⁴-1, and a pool that has handed out its last number. What a macro became is not read again.

use std::borrow::Cow;
use std::collections::BTreeMap;

const OPEN: &str = "${seq:";
const CLOSE: char = '}';

/// The counters of one attempt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sequences {
    /// The next number of each pool; `None` when the last was handed out.
    next: BTreeMap<u64, Option<u64>>,
}

impl Sequences {
    /// Counters that have handed out nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The text with its macros replaced.
    pub fn expand<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let Some((mut before, mut rest)) = text.split_once(OPEN) else { return Cow::Borrowed(text) };
        let mut numbers: BTreeMap<u64, Option<u64>> = BTreeMap::new();
        let mut expanded = String::with_capacity(text.len());
        loop {
            expanded.push_str(before);
            match read_pool(rest) {
                Some((pool, after))
                    if let Some(number) = *numbers.entry(pool).or_insert_with(|| self.take(pool)) =>
                {
                    expanded.push_str(&number.to_string());
                    rest = after;
                }
                _ => expanded.push_str(OPEN),
            }
            match rest.split_once(OPEN) {
                Some((text, macro_and_more)) => (before, rest) = (text, macro_and_more),
                None => break,
            }
        }
        expanded.push_str(rest);
        Cow::Owned(expanded)
    }

    /// The next number of a pool, if it has any left.
    fn take(&mut self, pool: u64) -> Option<u64> {
        let next = self.next.entry(pool).or_insert(Some(pool));
        let number = *next;
        *next = number.and_then(|number| number.checked_add(1));
        number
    }
}

/// The pool a macro names and the text behind it, when `${seq:` was read already.
fn read_pool(text: &str) -> Option<(u64, &str)> {
    let (digits, after) = text.split_once(CLOSE)?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| is_number)?, after))
}
