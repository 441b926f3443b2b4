//! From text to words.

use super::Mistake;

/// One word of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    /// A name or a keyword.
    Name(String),
    /// A whole number.
    Int(i64),
    /// A number with a fraction or an exponent.
    Double(f64),
    /// A string, its escapes resolved.
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
    /// The end.
    End,
}

/// Longer signs first.
const SIGNS: [&str; 25] = [
    "==", "!=", "<=", ">=", "&&", "||", "?", ":", "(", ")", "[", "]", "{", "}", ",", ".", "<", ">", "+", "-",
    "*", "/", "%", "!", "=",
];

/// All words with their offsets; the last is the end.
pub fn lex(text: &str) -> Result<Vec<(usize, Token)>, Mistake> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at += skipped(&text[at..]);
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else { break };
        let (token, length) = if first.is_ascii_digit()
            || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit()))
        {
            number(rest, at)?
        } else if let Some(quote) = string_start(rest) {
            string(rest, at, &quote)?
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            (Token::Name(rest[..length].to_owned()), length)
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            (Token::Sign(sign), sign.len())
        } else {
            return Err(Mistake::new(at, format!("{first:?} has no meaning here")));
        };
        tokens.push((at, token));
        at += length;
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

/// Length of spaces and comments.
fn skipped(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r', '\x0c']).len();
        let comment = if rest[spaces..].starts_with("//") {
            rest[spaces..].find('\n').unwrap_or(rest.len() - spaces)
        } else {
            0
        };
        if spaces + comment == 0 {
            return at;
        }
        at += spaces + comment;
    }
}

fn number(rest: &str, at: usize) -> Result<(Token, usize), Mistake> {
    let wrong = |what: &str| Mistake::new(at, format!("{what} is not a number that can be kept"));
    if let Some(hex) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        let digits = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        let value = i64::from_str_radix(&hex[..digits], 16).map_err(|_| wrong(&rest[..digits + 2]))?;
        let unsigned = usize::from(hex[digits..].starts_with(['u', 'U']));
        return Ok((Token::Int(value), digits + 2 + unsigned));
    }
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let mut length = digits(rest);
    let mut is_double = false;
    if rest[length..].starts_with('.') && rest[length + 1..].starts_with(|c: char| c.is_ascii_digit()) {
        is_double = true;
        length += 1 + digits(&rest[length + 1..]);
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let exponent = digits(&rest[length + 1 + sign..]);
        if exponent > 0 {
            is_double = true;
            length += 1 + sign + exponent;
        }
    }
    let text = &rest[..length];
    if is_double {
        let value: f64 = text.parse().map_err(|_| wrong(text))?;
        return if value.is_finite() { Ok((Token::Double(value), length)) } else { Err(wrong(text)) };
    }
    let value = text.parse().map_err(|_| wrong(text))?;
    let unsigned = usize::from(rest[length..].starts_with(['u', 'U']));
    Ok((Token::Int(value), length + unsigned))
}

/// How a string starts.
struct Quote {
    raw: bool,
    prefix: usize,
    mark: &'static str,
}

fn string_start(rest: &str) -> Option<Quote> {
    let raw = rest.starts_with(['r', 'R']);
    let after = &rest[usize::from(raw)..];
    let mark = ["'''", "\"\"\"", "'", "\""].into_iter().find(|mark| after.starts_with(mark))?;
    Some(Quote { raw, prefix: usize::from(raw) + mark.len(), mark })
}

fn string(rest: &str, at: usize, quote: &Quote) -> Result<(Token, usize), Mistake> {
    let &Quote { raw, prefix, mark } = quote;
    let mut value = String::new();
    let mut place = prefix;
    loop {
        let here = &rest[place..];
        if here.starts_with(mark) {
            return Ok((Token::Text(value), place + mark.len()));
        }
        match here.chars().next() {
            None => return Err(Mistake::new(at, "this string has no end")),
            Some('\n') if mark.len() == 1 => {
                return Err(Mistake::new(at, "this string has no end in its line; use three quotes"));
            }
            Some('\\') if !raw => {
                let (character, length) = escape(here).ok_or_else(|| {
                    Mistake::new(at + place, "is no escape; write \\\\ for a backslash, or r'…'")
                })?;
                value.push(character);
                place += length;
            }
            Some(character) => {
                value.push(character);
                place += character.len_utf8();
            }
        }
    }
}

/// The character an escape stands for, and how long the escape is.
fn escape(text: &str) -> Option<(char, usize)> {
    let kind = text[1..].chars().next()?;
    let simple = match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'v' => '\x0b',
        '\\' | '\'' | '"' | '`' | '?' => kind,
        'x' | 'X' => return coded(text, 2, 2, 16),
        'u' => return coded(text, 2, 4, 16),
        'U' => return coded(text, 2, 8, 16),
        '0'..='3' => return coded(text, 1, 3, 8),
        _ => return None,
    };
    Some((simple, 2))
}

fn coded(text: &str, from: usize, digits: usize, radix: u32) -> Option<(char, usize)> {
    let code = text.get(from..from + digits)?;
    let character = char::from_u32(u32::from_str_radix(code, radix).ok()?)?;
    Some((character, from + digits))
}
