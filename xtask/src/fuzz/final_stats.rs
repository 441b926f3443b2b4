//! What libFuzzer says at the end of a run.

use std::fmt;

/// The numbers of one run.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FinalStats {
    seconds: Option<u64>,
    executions: Option<u64>,
    /// Edges of the program that were reached by the seeds, and at the end.
    seeds_reached: Option<u64>,
    reached: Option<u64>,
    features: Option<u64>,
    inputs: Option<u64>,
}

impl FinalStats {
    /// Reads the log of a run.
    pub fn read(log: &str) -> Self {
        let mut stats = Self::default();
        for line in log.lines() {
            if let Some(value) = line.strip_prefix("stat::number_of_executed_units:") {
                stats.executions = value.trim().parse().ok();
            }
            if let Some(rest) = line.strip_prefix("Done ") {
                stats.seconds = number_after(rest, " in ");
            }
            if line.starts_with('#') && line.contains(" cov: ") {
                stats.reached = number_after(line, " cov: ").or(stats.reached);
                stats.features = number_after(line, " ft: ").or(stats.features);
                stats.inputs = number_after(line, " corp: ").or(stats.inputs);
                if line.contains("INITED") {
                    stats.seeds_reached = stats.reached;
                }
            }
        }
        stats
    }
}

fn number_after(line: &str, mark: &str) -> Option<u64> {
    let rest = line.split_once(mark)?.1;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

impl fmt::Display for FinalStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        let Self { seconds, executions, seeds_reached, reached, features, inputs } = self;
        write!(
            f,
            "{:>5} s {:>10} executions, edges {} -> {}, features {}, inputs {}",
            shown(*seconds),
            shown(*executions),
            shown(*seeds_reached),
            shown(*reached),
            shown(*features),
            shown(*inputs),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
INFO: Seed: 1
#3\tINITED cov: 10 ft: 11 corp: 2/5b exec/s: 0 rss: 30Mb
#8247\tREDUCE cov: 12 ft: 14 corp: 3/10b lim: 80 exec/s: 0 rss: 27Mb L: 5/5 MS: 1 EraseBytes-
#9000\tDONE   cov: 13 ft: 15 corp: 4/12b lim: 80 exec/s: 0 rss: 27Mb
Done 9000 runs in 31 second(s)
stat::number_of_executed_units: 9000
";

    #[test]
    fn the_numbers_of_a_run_are_read() {
        let stats = FinalStats::read(LOG);
        let words = "   31 s       9000 executions, edges 10 -> 13, features 15, inputs 4";
        assert_eq!(stats.to_string(), words);
    }

    #[test]
    fn a_run_that_broke_off_says_what_it_knew() {
        let stats = FinalStats::read(LOG.lines().take(3).collect::<Vec<_>>().join("\n").as_str());
        assert_eq!((stats.reached, stats.seconds), (Some(12), None));
        assert!(stats.to_string().starts_with("    ? s"));
    }
}
