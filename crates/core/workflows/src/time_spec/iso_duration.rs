//! Steps between occurrences as ISO 8601 writes durations: `P1M`, `P2W`, `PT90S`, `P1DT12H`; and its alternative form
//! without letters, `PT01:30` and `P0000-01-00T00:00:00`, in which `PT01` is one hour.

use std::fmt;

use super::TimeSpecError;
use super::text_cursor::TextCursor;

/// Largest number read.
const MAX_NUMBER: i64 = 1_000_000_000;
/// Units in the order in which they must come.
const UNITS: &str = "YMWDHMS";

/// A step: months and days on the calendar, then seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IsoDuration {
    /// Months, years included.
    pub months: i64,
    /// Days, weeks included.
    pub days: i64,
    /// Seconds, minutes and hours included.
    pub seconds: i64,
}

impl IsoDuration {
    /// Reads a whole part of a text. A step is at least one second.
    pub fn parse(part: &str, position: usize) -> Result<Self, TimeSpecError> {
        let start = TextCursor::new(part, position);
        let mut cursor = start;
        if cursor.take('-') {
            return Err(start.error("a period cannot be negative"));
        }
        if !cursor.take('P') {
            return Err(start.error("a period begins with P, such as PT1H or P1D"));
        }
        let has_units = cursor.rest().contains(|letter: char| UNITS.contains(letter));
        let step = if has_units { with_units(&mut cursor)? } else { without_units(&mut cursor)? };
        if step == Self::default() {
            return Err(start.error("the period is zero; the shortest is PT1S"));
        }
        Ok(step)
    }
}

fn with_units(cursor: &mut TextCursor<'_>) -> Result<IsoDuration, TimeSpecError> {
    let mut step = IsoDuration::default();
    let mut in_time = false;
    let mut last = None;
    while !cursor.is_done() {
        if cursor.peek() == Some('T') && !in_time {
            cursor.take('T');
            in_time = true;
            if cursor.is_done() {
                return Err(cursor.error("T is followed by hours, minutes or seconds"));
            }
            continue;
        }
        let start = *cursor;
        if matches!(cursor.peek(), Some('-' | '+')) {
            return Err(cursor.error("a period cannot be negative, and needs no sign"));
        }
        let number = number(cursor)?;
        let here = *cursor;
        let Some(unit) = cursor.next() else {
            return Err(here.error("a number needs a unit: Y, M, W or D, or behind a T H, M or S"));
        };
        let place = place_of(unit, in_time).ok_or_else(|| wrong_unit(&start, &here, unit, in_time))?;
        if last.is_some_and(|last| last >= place) {
            return Err(here.error(format!("{unit} comes too late; the order is Y, M, W, D, T, H, M, S")));
        }
        last = Some(place);
        number.add_to(&mut step, place, &start)?;
        if number.is_fraction() && !cursor.is_done() {
            return Err(cursor.error("only the last number may have a fraction"));
        }
    }
    Ok(step)
}

fn place_of(unit: char, in_time: bool) -> Option<usize> {
    let units = if in_time { &UNITS[4..] } else { &UNITS[..4] };
    units.find(unit).map(|place| place + if in_time { 4 } else { 0 })
}

fn wrong_unit(start: &TextCursor<'_>, here: &TextCursor<'_>, unit: char, in_time: bool) -> TimeSpecError {
    match unit {
        'H' | 'S' => {
            let written: String = start.rest().chars().take_while(|next| *next != unit).collect();
            here.error(format!("{unit} is a unit of time and needs a T before it: write PT{written}{unit}"))
        }
        'Y' | 'W' | 'D' if in_time => {
            here.error(format!("{unit} is a unit of dates and stands before the T"))
        }
        _ => here.error(format!("{unit:?} is no unit; those are Y, M, W, D and behind a T H, M, S")),
    }
}

/// A number, perhaps with a fraction.
struct Number {
    whole: i64,
    /// Digits behind the point.
    fraction: String,
}

fn number(cursor: &mut TextCursor<'_>) -> Result<Number, TimeSpecError> {
    let start = *cursor;
    let digits = cursor.digits();
    if digits.is_empty() {
        return Err(start.error("a number is expected here"));
    }
    let whole = digits.parse().ok().filter(|number| *number <= MAX_NUMBER);
    let whole = whole.ok_or_else(|| start.error("the number is too large"))?;
    let point = cursor.take('.') || cursor.take(',');
    let fraction = if point { cursor.digits() } else { "" };
    if point && (fraction.is_empty() || fraction.len() > 9) {
        return Err(cursor.error("a fraction has one to nine digits"));
    }
    Ok(Number { whole, fraction: fraction.to_owned() })
}

impl Number {
    fn is_fraction(&self) -> bool {
        !self.fraction.is_empty()
    }

    fn add_to(&self, step: &mut IsoDuration, place: usize, at: &TextCursor<'_>) -> Result<(), TimeSpecError> {
        if self.is_fraction() && place < 4 {
            return Err(at.error("years, months, weeks and days are whole; write hours instead"));
        }
        match place {
            0 => step.months += self.whole * 12,
            1 => step.months += self.whole,
            2 => step.days += self.whole * 7,
            3 => step.days += self.whole,
            _ => step.seconds += self.seconds([3600, 60, 1][place - 4], at)?,
        }
        Ok(())
    }

    fn seconds(&self, unit: i64, at: &TextCursor<'_>) -> Result<i64, TimeSpecError> {
        let digits = u32::try_from(self.fraction.len()).unwrap_or(0);
        let fraction: i64 = if digits == 0 { 0 } else { self.fraction.parse().unwrap_or(0) };
        let scale = 10_i64.pow(digits);
        if fraction * unit % scale != 0 {
            return Err(at.error("a period has whole seconds; nothing finer can be kept"));
        }
        Ok(self.whole * unit + fraction * unit / scale)
    }
}

/// `P[YYYY-MM-DD][Thh[:mm[:ss]]]`, with or without its dashes and colons.
fn without_units(cursor: &mut TextCursor<'_>) -> Result<IsoDuration, TimeSpecError> {
    let mut step = IsoDuration::default();
    let start = *cursor;
    if cursor.peek() != Some('T') {
        let unclear = "a number needs a unit: Y, M, W or D, or behind a T H, M or S";
        let year = cursor.number(4, unclear).map_err(|_| start.error(unclear))?;
        let dashed = cursor.take('-');
        let month = cursor.number(2, "the number of months")?;
        if dashed && !cursor.take('-') {
            return Err(cursor.error("a - and the number of days are expected here"));
        }
        let day = cursor.number(2, "the number of days")?;
        step.months = year * 12 + month;
        step.days = day;
        if cursor.is_done() {
            return Ok(step);
        }
    }
    if !cursor.take('T') {
        return Err(cursor.error("T and a time are expected here"));
    }
    let time = *cursor;
    let digits = cursor.rest().bytes().take_while(u8::is_ascii_digit).count();
    if !matches!(digits, 2 | 4 | 6) {
        return Err(time.error("hours have two digits without a unit; write for example PT1H, PT1M or PT1S"));
    }
    let hours = cursor.number(2, "the hours")?;
    if hours > 24 {
        return Err(time.error(format!(
            "without a unit this is {hours} hours; write PT{hours}H, PT{hours}M or PT{hours}S"
        )));
    }
    let colons = cursor.take(':');
    let minutes = if cursor.is_done() { 0 } else { cursor.number(2, "the minutes")? };
    if colons && !cursor.is_done() && !cursor.take(':') {
        return Err(cursor.error("a colon is expected here"));
    }
    let seconds = if cursor.is_done() { 0 } else { cursor.number(2, "the seconds")? };
    if !cursor.is_done() {
        return Err(cursor.error("there is more text than a period has"));
    }
    step.seconds = hours * 3600 + minutes * 60 + seconds;
    Ok(step)
}

impl fmt::Display for IsoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("P")?;
        let parts = |f: &mut fmt::Formatter<'_>, parts: [(i64, char); 3]| {
            parts
                .into_iter()
                .filter(|(number, _)| *number > 0)
                .try_for_each(|(number, unit)| write!(f, "{number}{unit}"))
        };
        parts(f, [(self.months / 12, 'Y'), (self.months % 12, 'M'), (self.days, 'D')])?;
        if self.seconds > 0 {
            f.write_str("T")?;
        }
        parts(f, [(self.seconds / 3600, 'H'), (self.seconds / 60 % 60, 'M'), (self.seconds % 60, 'S')])
    }
}
