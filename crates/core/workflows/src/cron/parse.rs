//! Reading the fields of cron.

use super::day_rule::DayRule;
use super::{Cron, TimeSpecError};

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const NICKNAMES: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// What a field may say.
struct FieldRule {
    name: &'static str,
    low: u32,
    high: u32,
    names: &'static [&'static str],
    /// The number of the first name.
    first_name: u32,
}

const SECOND: FieldRule = FieldRule { name: "second", low: 0, high: 59, names: &[], first_name: 0 };
const MINUTE: FieldRule = FieldRule { name: "minute", low: 0, high: 59, names: &[], first_name: 0 };
const HOUR: FieldRule = FieldRule { name: "hour", low: 0, high: 23, names: &[], first_name: 0 };
const DAY: FieldRule = FieldRule { name: "day of the month", low: 1, high: 31, names: &[], first_name: 0 };
const MONTH: FieldRule = FieldRule { name: "month", low: 1, high: 12, names: &MONTHS, first_name: 1 };
const WEEKDAY: FieldRule =
    FieldRule { name: "day of the week", low: 0, high: 7, names: &WEEKDAYS, first_name: 0 };

/// One field and where it stands.
#[derive(Clone, Copy)]
struct Field<'a> {
    text: &'a str,
    /// Its first character in the whole text, from 1.
    position: usize,
}

impl<'a> Field<'a> {
    fn error(self, reason: impl Into<String>) -> TimeSpecError {
        TimeSpecError::at(self.position, reason)
    }

    /// Its pieces between commas.
    fn pieces(self) -> impl Iterator<Item = Field<'a>> {
        let mut position = self.position;
        self.text.split(',').map(move |text| {
            let piece = Field { text, position };
            position += text.chars().count() + 1;
            piece
        })
    }

    fn begins_with_star(self) -> bool {
        self.text.starts_with(['*', '?'])
    }
}

/// Reads a text.
pub fn parse(text: &str) -> Result<Cron, TimeSpecError> {
    if text.starts_with('@') {
        let word = text.trim_end().to_ascii_lowercase();
        if let Some((_, fields)) = NICKNAMES.iter().find(|(name, _)| *name == word) {
            return parse(fields);
        }
        let names: Vec<_> = NICKNAMES.iter().map(|(name, _)| *name).collect();
        return Err(TimeSpecError::at(1, format!("{word} is none of {}", names.join(", "))));
    }
    let fields = fields(text);
    let (second, rest) = match fields.len() {
        5 => (Field { text: "0", position: 1 }, &fields[..]),
        6 => (fields[0], &fields[1..]),
        count => {
            let last = fields.last().map_or(1, |field| field.position);
            return Err(TimeSpecError::at(last, format!("cron has five or six fields, not {count}")));
        }
    };
    let days = DayRule {
        months: small(numbers(rest[3], &MONTH)?),
        any_day: rest[2].begins_with_star(),
        any_weekday: rest[4].begins_with_star(),
        ..DayRule::default()
    };
    let days = weekdays(rest[4], days_of_month(rest[2], days)?)?;
    let cron = Cron {
        seconds: numbers(second, &SECOND)?,
        minutes: numbers(rest[0], &MINUTE)?,
        hours: numbers(rest[1], &HOUR)?,
        days,
        is_elapsed: rest[0].begins_with_star() || rest[1].begins_with_star(),
        text: fields.iter().map(|field| field.text.to_ascii_uppercase()).collect::<Vec<_>>().join(" "),
    };
    if cron.next_civil(0).is_none() {
        return Err(rest[2].error("there is never such a day"));
    }
    Ok(cron)
}

fn fields(text: &str) -> Vec<Field<'_>> {
    let mut fields = Vec::new();
    let mut start = None;
    for (position, (offset, letter)) in text.char_indices().enumerate() {
        match (letter.is_whitespace(), start) {
            (false, None) => start = Some((offset, position + 1)),
            (true, Some((from, position))) => {
                fields.push(Field { text: &text[from..offset], position });
                start = None;
            }
            _ => {}
        }
    }
    if let Some((from, position)) = start {
        fields.push(Field { text: &text[from..], position });
    }
    fields
}

/// The numbers that a field says, as bits.
fn numbers(field: Field<'_>, rule: &FieldRule) -> Result<u64, TimeSpecError> {
    field.pieces().try_fold(0, |bits, piece| Ok(bits | range(piece, rule)?))
}

/// Bits of days and months, of which there are fewer than 32.
fn small(bits: u64) -> u32 {
    u32::try_from(bits).unwrap_or(u32::MAX)
}

/// `*`, `5`, `1-5`, each perhaps with `/2`.
fn range(piece: Field<'_>, rule: &FieldRule) -> Result<u64, TimeSpecError> {
    let (text, step) = match piece.text.split_once('/') {
        None => (piece.text, None),
        Some((text, step)) => {
            let at = Field { text: step, position: piece.position + text.chars().count() + 1 };
            let step = step.parse().ok().filter(|step: &u32| *step > 0);
            (text, Some(step.ok_or_else(|| at.error("a step is a number from 1 on"))?))
        }
    };
    let piece = Field { text, ..piece };
    let (low, high) = if text == "*" || text == "?" {
        (rule.low, if rule.high == 7 { 6 } else { rule.high })
    } else if let Some((low, high)) = text.split_once('-') {
        let second = Field { text: high, position: piece.position + low.chars().count() + 1 };
        let (low, high) = (number(Field { text: low, ..piece }, rule)?, number(second, rule)?);
        if low > high {
            return Err(piece.error("the range runs backwards"));
        }
        (low, high)
    } else {
        let number = number(piece, rule)?;
        (number, if step.is_some() { rule.high.min(59) } else { number })
    };
    let chosen = (low..=high).step_by(step.unwrap_or(1) as usize);
    // Sunday is 0 and 7.
    Ok(chosen.fold(0, |bits, number| bits | 1 << if rule.high == 7 { number % 7 } else { number }))
}

fn number(piece: Field<'_>, rule: &FieldRule) -> Result<u32, TimeSpecError> {
    let upper = piece.text.to_ascii_uppercase();
    if let Some(place) = rule.names.iter().position(|name| *name == upper) {
        return Ok(u32::try_from(place).unwrap_or(0) + rule.first_name);
    }
    let digits = !upper.is_empty() && upper.bytes().all(|digit| digit.is_ascii_digit());
    let number = upper.parse().ok().filter(|number| digits && (rule.low..=rule.high).contains(number));
    number.ok_or_else(|| {
        let FieldRule { name, low, high, .. } = rule;
        piece.error(format!("{:?} is not a {name}, which is {low} to {high}", piece.text))
    })
}

fn days_of_month(field: Field<'_>, mut rule: DayRule) -> Result<DayRule, TimeSpecError> {
    for piece in field.pieces() {
        if piece.text.eq_ignore_ascii_case("L") {
            rule.last_day = true;
        } else {
            rule.days |= small(range(piece, &DAY)?);
        }
    }
    Ok(rule)
}

fn weekdays(field: Field<'_>, mut rule: DayRule) -> Result<DayRule, TimeSpecError> {
    for piece in field.pieces() {
        if let Some((day, nth)) = piece.text.split_once('#') {
            let day = number(Field { text: day, ..piece }, &WEEKDAY)? % 7;
            let nth = nth.parse().ok().filter(|nth| (1..=5).contains(nth));
            rule.nth_weekdays
                .push((day, nth.ok_or_else(|| piece.error("behind # stands which one, 1 to 5"))?));
        } else if let Some(day) = piece.text.strip_suffix(['L', 'l']) {
            rule.last_weekdays |= 1 << (number(Field { text: day, ..piece }, &WEEKDAY)? % 7);
        } else {
            rule.weekdays |= small(range(piece, &WEEKDAY)?);
        }
    }
    Ok(rule)
}
