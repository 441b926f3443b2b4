//! When which part of a log was written, to the second.

use muster_types::Millis;

/// Bytes of an entry: the second and the place, each with the little end first.
const ENTRY: usize = 16;

/// The seconds in which a container wrote, each with the place where its output begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogTimes {
    entries: Vec<(i64, u64)>,
}

impl LogTimes {
    /// From (second, place), oldest first. What is not in order is dropped.
    pub fn new(entries: impl IntoIterator<Item = (i64, u64)>) -> Self {
        let mut ordered: Vec<(i64, u64)> = Vec::new();
        for (second, place) in entries {
            if ordered.last().is_none_or(|(before, at)| *before < second && *at <= place) {
                ordered.push((second, place));
            }
        }
        Self { entries: ordered }
    }

    /// Whether it tells one part of the log from another.
    pub fn is_needed(&self) -> bool {
        self.entries.len() > 1
    }

    /// The second in which everything was written, if it was one.
    pub fn only_second(&self) -> Option<i64> {
        if let [(second, _)] = self.entries[..] { Some(second) } else { None }
    }

    /// The first place that was written at or after a time, to the second; `end` if nothing was. A log of which no time is
    /// known counts as written later than any.
    pub fn offset_at(&self, time: Millis, first: u64, end: u64) -> u64 {
        let second = time.0.div_euclid(1000);
        let later = self.entries.partition_point(|(written, _)| *written < second);
        match self.entries.get(later) {
            _ if later == 0 => first,
            Some((_, place)) => (*place).clamp(first, end),
            None => end,
        }
    }

    /// As bytes to be kept.
    pub fn encode(&self) -> Vec<u8> {
        let bytes = |(second, place): &(i64, u64)| [second.to_le_bytes(), place.to_le_bytes()].concat();
        self.entries.iter().flat_map(bytes).collect()
    }

    /// From the bytes of [`LogTimes::encode`]; what is more or makes no sense is dropped.
    pub fn decode(bytes: &[u8]) -> Self {
        let number = |bytes: &[u8]| bytes.try_into().ok();
        let parse = |entry: &[u8; ENTRY]| {
            Some((i64::from_le_bytes(number(&entry[..8])?), u64::from_le_bytes(number(&entry[8..])?)))
        };
        Self::new(bytes.as_chunks::<ENTRY>().0.iter().filter_map(parse))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_finds_the_first_place_of_its_second_or_the_next() {
        let times = LogTimes::new([(100, 0), (103, 30), (104, 40)]);
        let at = |millis| times.offset_at(Millis(millis), 0, 55);
        assert_eq!([at(-5), at(100_000), at(100_999)], [0, 0, 0]);
        assert_eq!([at(101_000), at(103_500), at(104_000)], [30, 30, 40]);
        assert_eq!([at(105_000), at(i64::MAX)], [55, 55]);
    }

    #[test]
    fn a_log_without_times_is_given_whole() {
        assert_eq!(LogTimes::default().offset_at(Millis(1000), 7, 9), 7);
        let (one, two) = (LogTimes::new([(100, 0)]), LogTimes::new([(100, 0), (101, 1)]));
        assert_eq!((one.is_needed(), one.only_second()), (false, Some(100)));
        assert_eq!((two.is_needed(), two.only_second()), (true, None));
        assert_eq!([one.offset_at(Millis(100_999), 0, 9), one.offset_at(Millis(101_000), 0, 9)], [0, 9]);
    }

    #[test]
    fn times_come_back_as_they_went_and_nonsense_is_dropped() {
        let times = LogTimes::new([(-3, 0), (5, 10), (9, 10)]);
        assert_eq!(LogTimes::decode(&times.encode()), times);
        let mut bytes = times.encode();
        bytes.extend(LogTimes::new([(1, 99)]).encode());
        bytes.extend([1, 2, 3]);
        assert_eq!(LogTimes::decode(&bytes), times);
    }
}
