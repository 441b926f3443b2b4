//! Repeating intervals of ISO 8601, as they are written.
//!
//! `Rn/start/period`, `Rn/start/end`, `Rn/period/end`, `Rn/period` (from creation), and a start alone, which runs once.

use super::TimeSpecError;
use super::calendar::DAY;
use super::iso_duration::IsoDuration;
use super::iso_point::IsoPoint;
use super::series::{AnchorIs, Series};
use super::zone::Zone;

/// A repeating interval that is not anchored yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// Runs in all; `None` is no end.
    count: Option<u64>,
    anchor: Anchor,
    /// `None` runs once.
    step: Option<IsoDuration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    Creation,
    Start(IsoPoint),
    End(IsoPoint),
}

impl Interval {
    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, TimeSpecError> {
        let mut position = 1;
        let parts: Vec<(&str, usize)> = text
            .split('/')
            .map(|part| {
                let at = position;
                position += part.chars().count() + 1;
                (part, at)
            })
            .collect();
        let (first, at) = parts[0];
        if !first.starts_with('R') {
            return once(&parts);
        }
        let count = count(first, at)?;
        match parts[1..] {
            [] => Err(TimeSpecError::at(
                at + first.chars().count(),
                "a / and a start or a period are expected here, such as R/T01:00:00/P1D",
            )),
            [(part, at)] if is_duration(part) => {
                let step = IsoDuration::parse(part, at)?;
                Ok(Self { count, anchor: Anchor::Creation, step: Some(step) })
            }
            [(part, at)] => {
                let start = IsoPoint::parse(part, at)?;
                if count.is_none_or(|count| count > 1) {
                    let behind = at + part.chars().count();
                    return Err(TimeSpecError::at(
                        behind,
                        "a / and a period are expected here, such as /PT1H",
                    ));
                }
                Ok(Self { count, anchor: Anchor::Start(start), step: None })
            }
            [(left, left_at), (right, right_at)] => two_parts(count, (left, left_at), (right, right_at)),
            [_, _, (_, extra), ..] => {
                Err(TimeSpecError::at(extra, "there are at most a count and two parts"))
            }
        }
    }

    /// The occurrences for a schedule that was made then.
    pub fn anchor(&self, zone: &Zone, created: i64) -> Series {
        let count = if self.step.is_none() { self.count.map(|count| count.min(1)) } else { self.count };
        let (point, anchor_is) = match self.anchor {
            Anchor::Creation => return Series::new(zone.clone(), created, self.step, count, AnchorIs::First),
            Anchor::Start(point) => (point, AnchorIs::First),
            Anchor::End(point) => (point, AnchorIs::Last),
        };
        let zone = match point.offset {
            Some(offset) if !zone.changes() && zone.offset_at(0) == 0 => Zone::fixed(offset),
            _ => zone.clone(),
        };
        let civil = |days: i64| days * DAY + point.second;
        let moment =
            |days: i64| point.offset.map_or_else(|| zone.resolve(civil(days)), |offset| civil(days) - offset);
        let day = point.days.unwrap_or_else(|| {
            let offset = point.offset.unwrap_or_else(|| zone.offset_at(created));
            let today = (created + offset).div_euclid(DAY);
            // The clock of a zone can leave out a whole day.
            let day = (today - 1..=today + 2).find(|day| moment(*day) >= created);
            day.unwrap_or(today)
        });
        match point.offset {
            Some(offset) => Series::new(zone, civil(day) - offset, self.step, count, anchor_is),
            None => Series::from_civil(zone, civil(day), self.step, count, anchor_is),
        }
    }
}

fn is_duration(part: &str) -> bool {
    part.starts_with(['P', '-'])
}

/// A start alone.
fn once(parts: &[(&str, usize)]) -> Result<Interval, TimeSpecError> {
    let (first, at) = parts[0];
    if is_duration(first) {
        return Err(TimeSpecError::at(at, format!("what repeats begins with R: write R/{first}")));
    }
    let start = IsoPoint::parse(first, at)?;
    if let Some((_, second)) = parts.get(1) {
        return Err(TimeSpecError::at(*second, "what repeats begins with R, such as R5/T01:00:00/PT1H"));
    }
    Ok(Interval { count: Some(1), anchor: Anchor::Start(start), step: None })
}

fn count(part: &str, at: usize) -> Result<Option<u64>, TimeSpecError> {
    let digits = &part[1..];
    if digits.is_empty() || digits == "-1" {
        return Ok(None);
    }
    let number = digits.parse().ok().filter(|_| digits.bytes().all(|digit| digit.is_ascii_digit()));
    let number = number.filter(|number: &u64| *number <= 1_000_000_000);
    number.map(Some).ok_or_else(|| {
        TimeSpecError::at(
            at + 1,
            "behind R stands how often it runs in all, at most 1000000000; nothing is no end",
        )
    })
}

fn two_parts(
    count: Option<u64>,
    (left, left_at): (&str, usize),
    (right, right_at): (&str, usize),
) -> Result<Interval, TimeSpecError> {
    match (is_duration(left), is_duration(right)) {
        (true, true) => Err(TimeSpecError::at(right_at, "one of the two parts is a time, not a period")),
        (false, true) => {
            let start = IsoPoint::parse(left, left_at)?;
            let step = IsoDuration::parse(right, right_at)?;
            Ok(Interval { count, anchor: Anchor::Start(start), step: Some(step) })
        }
        (true, false) => {
            let step = IsoDuration::parse(left, left_at)?;
            let end = dated(right, right_at, "an end")?;
            Ok(Interval { count, anchor: Anchor::End(end), step: Some(step) })
        }
        (false, false) => {
            let start = dated(left, left_at, "a start with an end")?;
            let end = dated(right, right_at, "an end")?;
            // Without an offset of its own the end is as the start.
            let offset = |point: &IsoPoint| point.offset.or(start.offset).unwrap_or(0);
            let moment = |point: &IsoPoint| point.days.unwrap_or(0) * DAY + point.second - offset(point);
            let seconds = moment(&end) - moment(&start);
            if seconds <= 0 {
                return Err(TimeSpecError::at(right_at, "the end is not after the start"));
            }
            let step = IsoDuration { seconds, ..IsoDuration::default() };
            Ok(Interval { count, anchor: Anchor::Start(start), step: Some(step) })
        }
    }
}

fn dated(part: &str, at: usize, what: &str) -> Result<IsoPoint, TimeSpecError> {
    let point = IsoPoint::parse(part, at)?;
    if point.days.is_none() {
        return Err(TimeSpecError::at(at, format!("{what} needs a date")));
    }
    Ok(point)
}
