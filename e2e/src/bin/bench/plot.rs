//! Bars as SVG, drawn by hand: a label, a bar, a number.

/// One bar.
pub struct Bar {
    /// What was measured.
    pub label: String,
    /// How much.
    pub value: f64,
    /// Whose it is; chooses the colour.
    pub series: Series,
}

/// Whose a bar is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// Ours.
    Muster,
    /// Another system's.
    Peer,
    /// The machine's own.
    Limit,
}

const ROW: usize = 26;
const LEFT: usize = 250;
const WIDTH: f64 = 420.0;

/// A chart of bars on one scale.
pub fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let largest = bars.iter().map(|bar| bar.value).fold(1.0, f64::max);
    let height = 60 + ROW * bars.len();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"780\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\" role=\"img\" aria-label=\"{title}\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{title}</text>\n"
    );
    for (index, bar) in bars.iter().enumerate() {
        let top = 44 + ROW * index;
        let middle = top + 14;
        let width = (bar.value / largest * WIDTH).max(1.0);
        let color = match bar.series {
            Series::Muster => "#1f6feb",
            Series::Peer => "#d1732a",
            Series::Limit => "#9aa4ad",
        };
        #[allow(clippy::cast_precision_loss, reason = "a coordinate")]
        let after = LEFT as f64 + width + 6.0;
        svg += &format!(
            "<text x=\"{}\" y=\"{middle}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{top}\" width=\"{width:.1}\" height=\"18\" fill=\"{color}\"/>\
             <text x=\"{after:.1}\" y=\"{middle}\">{} {unit}</text>\n",
            LEFT - 8,
            bar.label,
            number(bar.value),
        );
    }
    svg + "</svg>\n"
}

/// A number people can read: no decimals when it is large.
pub fn number(value: f64) -> String {
    if value < 10.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}
