//! Points in time as ISO 8601 writes them: a date and a time, or a time alone.
//!
//! Dates: `2026-11-15`, `20261115`, ordinal (`2026-319`, `2026319`) and by week (`2026-W46-7`, `2026W467`). Times: hours,
//! minutes, seconds, with or without colons, the last ones left out if they are zero; `24:00` is the end of the day.
//! Then nothing, `Z` or an offset.

use super::TimeSpecError;
use super::calendar::{DAY, days_in_month, days_of_date};
use super::text_cursor::TextCursor;

/// A point in time, perhaps without its date or its distance from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IsoPoint {
    /// Days since 1970; `None` is any day.
    pub days: Option<i64>,
    /// Second of the day.
    pub second: i64,
    /// Seconds before UTC; `None` is those of the zone.
    pub offset: Option<i64>,
}

impl IsoPoint {
    /// Reads a whole part of a text.
    pub fn parse(part: &str, position: usize) -> Result<Self, TimeSpecError> {
        let mut cursor = TextCursor::new(part, position);
        let days = if cursor.peek() == Some('T') { None } else { Some(date(&mut cursor)?) };
        if cursor.is_done() {
            return Ok(Self { days, second: 0, offset: None });
        }
        if !cursor.take('T') {
            return Err(cursor.error("a date is followed by T and a time"));
        }
        let second = time(&mut cursor)?;
        let offset = offset(&mut cursor)?;
        if !cursor.is_done() {
            return Err(cursor.error("there is more text than a time has"));
        }
        Ok(Self { days, second, offset })
    }
}

fn date(cursor: &mut TextCursor<'_>) -> Result<i64, TimeSpecError> {
    let start = *cursor;
    if !cursor.peek().is_some_and(|first| first.is_ascii_digit()) {
        return Err(cursor.error("a time such as 2026-11-15T01:00:00Z or T01:00:00 is expected here"));
    }
    let year = cursor.number(4, "the year")?;
    let dashed = cursor.take('-');
    if cursor.take('W') {
        return week_date(year, dashed, cursor);
    }
    let digits = cursor.rest().bytes().take_while(u8::is_ascii_digit).count();
    if digits == 3 {
        let day = cursor.number(3, "the day of the year")?;
        let last = 337 + days_in_month(year, 2);
        if !(1..=last).contains(&day) {
            return Err(start.error(format!("{year} has no day {day}")));
        }
        return Ok(days_of_date(year, 1, 1) + day - 1);
    }
    let month = cursor.number(2, "the month")?;
    if dashed && !cursor.take('-') {
        return Err(cursor.error("a - and the day are expected here"));
    }
    let day = cursor.number(2, "the day")?;
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return Err(start.error(format!("there is no day {year:04}-{month:02}-{day:02}")));
    }
    Ok(days_of_date(year, month, day))
}

fn week_date(year: i64, dashed: bool, cursor: &mut TextCursor<'_>) -> Result<i64, TimeSpecError> {
    let start = *cursor;
    let week = cursor.number(2, "the week")?;
    if dashed && !cursor.take('-') {
        return Err(cursor.error("a - and the day of the week are expected here"));
    }
    let day = cursor.number(1, "the day of the week")?;
    let first = first_monday(year);
    let weeks = (first_monday(year + 1) - first) / 7;
    if !(1..=weeks).contains(&week) || !(1..=7).contains(&day) {
        return Err(start.error(format!("{year} has {weeks} weeks of days 1 to 7")));
    }
    Ok(first + (week - 1) * 7 + day - 1)
}

/// The Monday of the week that holds 4 January.
fn first_monday(year: i64) -> i64 {
    let fourth = days_of_date(year, 1, 4);
    fourth - (fourth + 3).rem_euclid(7)
}

fn time(cursor: &mut TextCursor<'_>) -> Result<i64, TimeSpecError> {
    let start = *cursor;
    let hour = cursor.number(2, "the hour")?;
    let colons = cursor.take(':');
    let more = |cursor: &TextCursor<'_>| cursor.peek().is_some_and(|next| next.is_ascii_digit());
    let minute = if colons || more(cursor) { cursor.number(2, "the minute")? } else { 0 };
    let second = if colons && cursor.take(':') || !colons && more(cursor) {
        cursor.number(2, "the second")?
    } else {
        0
    };
    if cursor.peek().is_some_and(|next| next == '.' || next == ',') {
        return Err(cursor.error("times have whole seconds"));
    }
    let whole = hour * 3600 + minute * 60 + second;
    if minute > 59 || second > 59 || whole > DAY {
        return Err(start.error("there is no such time of day"));
    }
    Ok(whole)
}

fn offset(cursor: &mut TextCursor<'_>) -> Result<Option<i64>, TimeSpecError> {
    let start = *cursor;
    let sign = match cursor.peek() {
        None => return Ok(None),
        Some('Z') => {
            cursor.take('Z');
            return Ok(Some(0));
        }
        Some('+') => 1,
        Some('-') => -1,
        Some(_) => return Err(cursor.error("Z or an offset such as +02:00 is expected here")),
    };
    cursor.next();
    let hours = cursor.number(2, "the hour of the offset")?;
    let minutes = if cursor.take(':') || !cursor.is_done() {
        cursor.number(2, "the minute of the offset")?
    } else {
        0
    };
    if hours > 23 || minutes > 59 {
        return Err(start.error("an offset is less than a day"));
    }
    Ok(Some(sign * (hours * 3600 + minutes * 60)))
}
