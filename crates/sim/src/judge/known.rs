//! Findings that are known and not mended yet. Each names what is open; a seed that finds nothing else is no failure. The judge
//! itself finds them all the same: this list is applied by whoever plays seeds.

use super::Finding;

/// What is open.
struct Known {
    statement: &'static str,
    /// Part of the words of the finding.
    part: &'static str,
}

/// Everything that is open.
const KNOWN: &[Known] = &[
    // A member that succeeded and was reaped counts as Canceled after a crash: `status.gone` is written too late. Seed 51.
    Known { statement: "groups_count_truly", part: "of its members succeeded" },
    // A robot comes back with an attempt that counted as lost: the copy that replaced it is told to end, and its task keeps no place in
    // the rules until it has. Seed 27.
    Known { statement: "unique", part: "which another attempt replaced" },
];

/// True if a finding is known.
pub fn is_known(finding: &Finding) -> bool {
    KNOWN.iter().any(|known| known.statement == finding.statement && finding.words.contains(known.part))
}
