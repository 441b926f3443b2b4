//! Reads the text language of label selectors.
//!
//! The grammar is Kubernetes': requirements separated by commas, blanks wherever tokens meet, `in` and `notin`
//! as operators only where an operator can stand.

use std::fmt;

use thiserror::Error;

use super::{LabelSelector, Requirement, Test};

/// Longest selector read.
const MAX_BYTES: usize = 32 * 1024;

/// Why a text is not a label selector.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unable to parse label selector at character {position}: {message}")]
pub struct LabelSelectorError {
    /// The character where reading stopped, counted from 1.
    pub position: usize,
    /// What was wrong there.
    pub message: String,
}

/// Reads a whole selector.
pub fn parse(text: &str) -> Result<LabelSelector, LabelSelectorError> {
    let mut parser = Parser { text, at: 0 };
    let result = if text.len() > MAX_BYTES {
        Err(Refusal { at: 0, message: format!("a selector has at most {MAX_BYTES} bytes") })
    } else {
        parser.selector()
    };
    result.map_err(|refusal| LabelSelectorError {
        position: text.get(..refusal.at).map_or(0, |before| before.chars().count()) + 1,
        message: refusal.message,
    })
}

struct Parser<'a> {
    text: &'a str,
    /// Offset of the first byte not read yet; always on a character boundary.
    at: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Sign(&'a str),
    End,
}

struct Refusal {
    at: usize,
    message: String,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(text) | Self::Sign(text) => write!(f, "found '{text}'"),
            Self::End => f.write_str("found the end"),
        }
    }
}

impl<'a> Parser<'a> {
    fn selector(&mut self) -> Result<LabelSelector, Refusal> {
        let mut requirements = vec![];
        if self.peek() == Token::End {
            return Ok(LabelSelector::default());
        }
        loop {
            requirements.push(self.requirement()?);
            match self.next() {
                (_, Token::End) => return Ok(LabelSelector::new(requirements)),
                (_, Token::Sign(",")) => {}
                (at, found) => return refuse(at, found, "',' or the end"),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, Refusal> {
        let negated = self.skip_sign("!");
        let (at, key) = match self.next() {
            (at, Token::Word(key)) => (at, key),
            (at, found) => return refuse(at, found, "a label key or '!'"),
        };
        let test = match self.peek() {
            _ if negated => Test::DoesNotExist,
            Token::End | Token::Sign(",") => Test::Exists,
            _ => self.test()?,
        };
        Requirement::new(key, test).map_err(|message| Refusal { at, message })
    }

    fn test(&mut self) -> Result<Test, Refusal> {
        match self.next() {
            (_, Token::Sign("=" | "==")) => Ok(Test::In(vec![self.value()?.1.to_owned()])),
            (_, Token::Sign("!=")) => Ok(Test::NotIn(vec![self.value()?.1.to_owned()])),
            (_, Token::Sign(">")) => Ok(Test::GreaterThan(self.bound()?)),
            (_, Token::Sign("<")) => Ok(Test::LessThan(self.bound()?)),
            (_, Token::Word("in")) => Ok(Test::In(self.values()?)),
            (_, Token::Word("notin")) => Ok(Test::NotIn(self.values()?)),
            (at, found) => refuse(at, found, "one of =, ==, !=, >, <, in, notin"),
        }
    }

    /// One value; nothing before a comma or the end is the empty value.
    fn value(&mut self) -> Result<(usize, &'a str), Refusal> {
        match self.peek() {
            Token::End | Token::Sign(",") => Ok((self.at, "")),
            _ => match self.next() {
                (at, Token::Word(value)) => Ok((at, value)),
                (at, found) => refuse(at, found, "a value"),
            },
        }
    }

    fn bound(&mut self) -> Result<i64, Refusal> {
        let (at, value) = self.value()?;
        let message = || "for 'Gt', 'Lt' operators, the value must be an integer".to_owned();
        value.parse().map_err(|_| Refusal { at, message: message() })
    }

    /// `(a,b)`; nothing between two separators is the empty value, nothing at all is no value.
    fn values(&mut self) -> Result<Vec<String>, Refusal> {
        match self.next() {
            (_, Token::Sign("(")) => {}
            (at, found) => return refuse(at, found, "'('"),
        }
        if self.skip_sign(")") {
            return Ok(vec![]);
        }
        let mut values = vec![];
        loop {
            let value = match self.peek() {
                Token::Word(value) => {
                    self.next();
                    value
                }
                _ => "",
            };
            values.push(value.to_owned());
            match self.next() {
                (_, Token::Sign(",")) => {}
                (_, Token::Sign(")")) => return Ok(values),
                (at, found) => return refuse(at, found, "',' or ')'"),
            }
        }
    }

    fn skip_sign(&mut self, sign: &str) -> bool {
        let skip = self.peek() == Token::Sign(sign);
        if skip {
            self.next();
        }
        skip
    }

    fn peek(&self) -> Token<'a> {
        Parser { text: self.text, at: self.at }.next().1
    }

    /// The next token and where it starts.
    fn next(&mut self) -> (usize, Token<'a>) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let token = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let start = self.text.len() - token.len();
        let length = match token.as_bytes() {
            [] => return (start, Token::End),
            [b'=' | b'!', b'=', ..] => 2,
            [b'=' | b'!' | b'(' | b')' | b',' | b'<' | b'>', ..] => 1,
            _ => {
                let end = token.find(['=', '!', '(', ')', ',', '<', '>', ' ', '\t', '\r', '\n']);
                let word = &token[..end.unwrap_or(token.len())];
                self.at = start + word.len();
                return (start, Token::Word(word));
            }
        };
        self.at = start + length;
        (start, Token::Sign(&token[..length]))
    }
}

fn refuse<T>(at: usize, found: Token<'_>, expected: &str) -> Result<T, Refusal> {
    Err(Refusal { at, message: format!("{found}, expected {expected}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        parse(text).map_or_else(|error| error.to_string(), |selector| selector.to_string())
    }

    #[test]
    fn every_form_is_read() {
        for (text, written) in [
            ("a=b,c!=d,e in (x,y),f notin (z),g,!h", "a=b,c!=d,e in (x,y),f!=z,g,!h"),
            ("  a == b\t,\n! c ", "a=b,!c"),
            ("a in(b,c)", "a in (b,c)"),
            ("in in (in,notin),notin", "in in (in,notin),notin"),
            ("a=,b", "a=,b"),
            ("a in (,b)", "a in (,b)"),
            ("a in (b,)", "a in (,b)"),
            ("a=in", "a=in"),
            ("x.io/a>007,b<9", "x.io/a>7,b<9"),
            ("", ""),
            (" \t", ""),
        ] {
            assert_eq!(read(text), written, "{text}");
        }
    }

    #[test]
    fn refusals_say_where_and_what() {
        for (text, position, message) in [
            ("a=b,", 5, "found the end, expected a label key or '!'"),
            (",a", 1, "found ',', expected a label key or '!'"),
            ("a b", 3, "found 'b', expected one of =, ==, !=, >, <, in, notin"),
            ("a=b c", 5, "found 'c', expected ',' or the end"),
            ("!a=b", 3, "found '=', expected ',' or the end"),
            ("a===b", 4, "found '=', expected a value"),
            ("a in b", 6, "found 'b', expected '('"),
            ("a in (b", 8, "found the end, expected ',' or ')'"),
            ("a in (b c)", 9, "found 'c', expected ',' or ')'"),
            ("b,a in ()", 3, "for 'in', 'notin' operators, values set can't be empty"),
            ("a=b,c>x", 7, "for 'Gt', 'Lt' operators, the value must be an integer"),
            ("a>", 3, "for 'Gt', 'Lt' operators, the value must be an integer"),
            ("a>99999999999999999999", 3, "for 'Gt', 'Lt' operators, the value must be an integer"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.position, error.message.as_str()), (position, message), "{text}");
        }
    }

    #[test]
    fn keys_and_values_obey_the_rules_of_labels() {
        assert!(read("é=b").starts_with("unable to parse label selector at character 1: name part must"));
        assert!(read("a=b,-c").starts_with("unable to parse label selector at character 5: name part must"));
        assert!(read("a=b/c").contains("a valid label must be"));
        assert!(read("a>-1").contains("must not be negative"));
    }

    #[test]
    fn a_selector_that_is_too_long_is_refused() {
        assert!(read(&"a,".repeat(MAX_BYTES)).contains("at most 32768 bytes"));
    }
}
