//! Days and seconds of the Gregorian calendar without a zone, as numbers: civil seconds are counted from 1970 as if there
//! were no zones.

/// Seconds in a day.
pub const DAY: i64 = 86_400;

/// Days since 1970 of a date.
pub fn days_of_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day of a number of days since 1970.
pub fn date_of_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Year, month, day, and second of the day.
pub fn civil_parts(civil: i64) -> (i64, i64, i64, i64) {
    let (year, month, day) = date_of_days(civil.div_euclid(DAY));
    (year, month, day, civil.rem_euclid(DAY))
}

/// How many days a month has.
pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Civil seconds moved by months and then by days; a day that the month does not have becomes its last. `None` outside
/// of the years 0 to 9999.
pub fn add_months_and_days(civil: i64, months: i64, days: i64) -> Option<i64> {
    let (year, month, day, second) = civil_parts(civil);
    let index = (year * 12 + month - 1).checked_add(months)?;
    let (year, month) = (index.div_euclid(12), index.rem_euclid(12) + 1);
    if !(0..=9999).contains(&year) {
        return None;
    }
    let day = day.min(days_in_month(year, month));
    let day = days_of_date(year, month, day).checked_add(days)?;
    let civil = day.checked_mul(DAY)?.checked_add(second)?;
    (0..=9999).contains(&date_of_days(day.clamp(-1_000_000, 4_000_000)).0).then_some(civil)
}

/// Writes civil seconds as `2026-11-15T01:00:00`.
pub fn show_civil(civil: i64) -> String {
    let (year, month, day, second) = civil_parts(civil);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree_with_each_other_over_all_years() {
        for days in (-719_528..2_932_896).step_by(13) {
            let (year, month, day) = date_of_days(days);
            assert_eq!(days_of_date(year, month, day), days);
            assert!((1..=days_in_month(year, month)).contains(&day));
        }
        assert_eq!(date_of_days(0), (1970, 1, 1));
        assert_eq!(show_civil(951_782_400), "2000-02-29T00:00:00");
    }

    #[test]
    fn a_day_that_a_month_does_not_have_is_its_last() {
        let january = days_of_date(2024, 1, 31) * DAY;
        let stepped: Vec<_> =
            (0..4).filter_map(|k| add_months_and_days(january, k, 0)).map(show_civil).collect();
        let days: Vec<_> = stepped.iter().map(|text| &text[..10]).collect();
        assert_eq!(days, ["2024-01-31", "2024-02-29", "2024-03-31", "2024-04-30"]);
        assert_eq!(add_months_and_days(january, 12 * 9000, 0), None);
    }
}
