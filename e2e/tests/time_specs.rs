//! Times as others read them: repeating intervals against metomi-isodatetime, cron against cronsim.
//!
//! metomi-isodatetime steps from time to time and so drifts at the ends of months; days here are at most the 28th, and month
//! ends are tested by table in `crates/core/workflows/tests/time_specs.rs`.

use muster_e2e::client_tool::ClientTool;
use muster_types::Timestamp;
use muster_workflows::time_spec::TimeSpec;

/// Texts of each form.
const TEXTS: u32 = 10_000;
/// Texts that are read by one process.
const AT_ONCE: usize = 2_000;
/// Times compared of each text.
const TIMES: usize = 6;

/// Numbers that are the same in every run (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    fn pick<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[usize::try_from(self.below(texts.len() as u64)).expect("a small number")]
    }
}

/// A text, the zone it is read in, and the first second that counts.
struct Text {
    form: &'static str,
    spec: String,
    zone: &'static str,
    start: i64,
}

fn point(numbers: &mut Numbers, years: (u64, u64), extended: bool) -> String {
    let (year, month, day) =
        (numbers.between(years.0, years.1), numbers.between(1, 12), numbers.between(1, 28));
    let (hour, minute, second) = (numbers.below(24), numbers.below(60), numbers.below(60));
    if extended {
        let offset = numbers.pick(&["Z", "Z", "+02:00", "-05:30"]);
        format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{offset}")
    } else {
        let offset = numbers.pick(&["Z", "Z", "+0200", "-0530"]);
        format!("{year}{month:02}{day:02}T{hour:02}{minute:02}{second:02}{offset}")
    }
}

fn step(numbers: &mut Numbers) -> String {
    let (a, b) = (numbers.between(1, 40), numbers.between(1, 50));
    match numbers.below(9) {
        0 => format!("PT{}S", a * b),
        1 => format!("PT{a}M{b}S"),
        2 => format!("PT{a}H{b}M"),
        3 => format!("P{a}D"),
        4 => format!("P{b}W"),
        5 => format!("P{}M", numbers.between(1, 14)),
        6 => format!("P{}Y", numbers.between(1, 4)),
        7 => format!("P{a}DT{b}H"),
        _ => format!("PT{:02}", numbers.between(1, 24)) + numbers.pick(&["H", "M"]),
    }
}

fn interval(numbers: &mut Numbers) -> Text {
    let extended = numbers.below(2) == 0;
    let count = numbers.between(2, 8);
    let spec = match numbers.below(4) {
        0 => format!("R{count}/{}/{}", step(numbers), point(numbers, (2020, 2030), extended)),
        1 => {
            let (start, end) =
                (point(numbers, (2020, 2024), extended), point(numbers, (2025, 2030), extended));
            format!("R{count}/{start}/{end}")
        }
        2 => format!("R/{}/{}", point(numbers, (2020, 2030), extended), step(numbers)),
        _ => format!("R{count}/{}/{}", point(numbers, (2020, 2030), extended), step(numbers)),
    };
    Text { form: "iso", spec, zone: "UTC", start: 0 }
}

fn field(numbers: &mut Numbers, low: u64, high: u64) -> String {
    let (a, b) = (numbers.between(low, high), numbers.between(low, high));
    match numbers.below(7) {
        0..3 => "*".to_owned(),
        3 => a.to_string(),
        4 => format!("*/{}", numbers.between(1, high / 2)),
        5 => format!("{}-{}", a.min(b), a.max(b)),
        _ => format!("{a},{b}"),
    }
}

fn cron(numbers: &mut Numbers) -> Text {
    let days = match numbers.below(6) {
        0 => "L".to_owned(),
        _ => field(numbers, 1, 28),
    };
    let months = numbers.pick(&["*", "*", "JAN-MAR", "3", "10", "*/2", "FEB,NOV"]);
    let weekdays = match numbers.below(6) {
        0 => numbers.pick(&["MON-FRI", "SUN", "7", "2#3"]).to_owned(),
        _ => field(numbers, 0, 6),
    };
    let spec = format!("{} {} {days} {months} {weekdays}", field(numbers, 0, 59), field(numbers, 0, 23));
    let zone = numbers.pick(&["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu"]);
    // 2024 to 2028; often the day before a change of the clock in Berlin or New York.
    let near = [1_711_756_800, 1_729_900_800, 1_741_478_400, 1_793_491_200];
    let start = match numbers.below(2) {
        0 => near[usize::try_from(numbers.below(4)).expect("a small number")] + numbers.below(90_000),
        _ => numbers.between(1_704_067_200, 1_830_297_600),
    };
    Text { form: "cron", spec, zone, start: i64::try_from(start).expect("a second") }
}

/// The first times as Python reads them, each once.
fn python_reads(texts: &[Text]) -> Vec<Vec<i64>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/python/time_specs.py");
    let line = |text: &Text| format!("{}\t{}\t{}\t{}\n", text.form, text.spec, text.zone, text.start);
    let input: String = texts.iter().map(line).collect();
    let said = ClientTool::named_by("MUSTER_PYTHON").given(input).ok(&format!("'{script}'"));
    let read = |line: &str| {
        let mut times: Vec<i64> = line.split(' ').filter_map(|time| time.parse().ok()).collect();
        times.dedup();
        times
    };
    said.lines().map(read).collect()
}

/// The same as we read them.
fn we_read(text: &Text) -> Result<Vec<i64>, String> {
    let spec = TimeSpec::parse(&text.spec, text.zone).map_err(|error| error.to_string())?;
    let occurrences = spec.starting(Timestamp::from_second(text.start));
    let first = occurrences.next_at_or_after(Timestamp::from_second(text.start));
    let times = std::iter::successors(first, |time| occurrences.next_after(*time));
    Ok(times.take(TIMES).map(Timestamp::as_second).collect())
}

#[track_caller]
fn check(make: fn(&mut Numbers) -> Text, least: usize) {
    let mut numbers = Numbers(2015);
    let texts: Vec<Text> = (0..TEXTS).map(|_| make(&mut numbers)).collect();
    let mut compared = 0;
    for texts in texts.chunks(AT_ONCE) {
        let theirs = python_reads(texts);
        assert_eq!(theirs.len(), texts.len());
        for (text, theirs) in texts.iter().zip(theirs) {
            // What never comes is an error here and no times there.
            let ours = if theirs.is_empty() { Vec::new() } else { we_read(text).unwrap_or_default() };
            let most = ours.len().min(theirs.len());
            assert_eq!(ours[..most], theirs[..most], "{} in {} from {}", text.spec, text.zone, text.start);
            assert!(most >= theirs.len().min(2), "{}: {ours:?}, not {theirs:?}", text.spec);
            compared += usize::from(most > 1);
        }
    }
    assert!(compared >= least, "only {compared} texts had times to compare");
}

#[test]
fn python_reads_ten_thousand_repeating_intervals_as_we_do() {
    check(interval, 9_900);
}

#[test]
fn python_reads_ten_thousand_cron_lines_as_we_do() {
    check(cron, 9_000);
}
