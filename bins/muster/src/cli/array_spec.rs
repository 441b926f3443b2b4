//! The numbers of an array of tasks: `1-1000`, `0-100:10`, `1,3,7-9`.

use std::str::FromStr;

/// Most tasks in one array.
const MOST: usize = 1_000_000;

/// The numbers of an array, each once, in the order they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArraySpec(Vec<u64>);

impl ArraySpec {
    /// The numbers.
    pub fn numbers(&self) -> &[u64] {
        &self.0
    }
}

impl FromStr for ArraySpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut numbers = Vec::new();
        for part in text.split(',') {
            let (first, last, step) = range(part)?;
            let count = (last - first) / step;
            if usize::try_from(count).map_or(true, |count| numbers.len() + count >= MOST) {
                return Err(format!("that is more than {MOST} tasks; make several arrays"));
            }
            numbers.extend((0..=count).map(|at| first + at * step));
        }
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("{} is in it twice", pair[0])),
            None => Ok(Self(numbers)),
        }
    }
}

/// First, last and step of one part.
fn range(part: &str) -> Result<(u64, u64, u64), String> {
    let number = |text: &str| {
        let wrong = |_| {
            let hint = "write numbers and ranges, such as 1-1000, 0-100:10 or 1,3,7-9";
            format!("\"{part}\" is not a range; {hint}")
        };
        text.trim().parse::<u64>().map_err(wrong)
    };
    let (span, step) = match part.split_once(':') {
        Some((span, step)) => (span, number(step)?),
        None => (part, 1),
    };
    let (first, last) = match span.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(span)?, number(span)?),
    };
    match () {
        () if step == 0 => Err(format!("the step of \"{part}\" is zero")),
        () if last < first => Err(format!("\"{part}\" ends before it begins")),
        () => Ok((first, last, step)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Result<Vec<u64>, String> {
        text.parse::<ArraySpec>().map(|spec| spec.0)
    }

    #[test]
    fn ranges_steps_and_lists_are_read() {
        assert_eq!(numbers("1-4").unwrap(), [1, 2, 3, 4]);
        assert_eq!(numbers("0-10:5").unwrap(), [0, 5, 10]);
        assert_eq!(numbers("0-9:5").unwrap(), [0, 5]);
        assert_eq!(numbers("1,3,7-9").unwrap(), [1, 3, 7, 8, 9]);
        assert_eq!(numbers("7").unwrap(), [7]);
    }

    #[test]
    fn what_is_no_range_is_refused_with_an_example() {
        assert!(numbers("").unwrap_err().contains("such as 1-1000"));
        assert!(numbers("a-b").unwrap_err().contains("\"a-b\" is not a range"));
        assert_eq!(numbers("9-1").unwrap_err(), "\"9-1\" ends before it begins");
        assert_eq!(numbers("1-9:0").unwrap_err(), "the step of \"1-9:0\" is zero");
    }

    #[test]
    fn a_number_that_comes_twice_is_refused() {
        assert_eq!(numbers("1-5,3").unwrap_err(), "3 is in it twice");
    }

    #[test]
    fn an_array_has_a_limit_that_is_found_without_making_it() {
        assert_eq!(numbers("1-1000000").unwrap().len(), 1_000_000);
        assert!(numbers("0-1000000").unwrap_err().contains("more than 1000000"));
        assert!(numbers("0-18446744073709551615").unwrap_err().contains("more than 1000000"));
        assert!(numbers("1-999999,1000001-1000003").is_err());
    }
}
