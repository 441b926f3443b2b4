//! Reads the text of a selector.

use super::{MAX_BYTES, MAX_NESTING, Rule, Selector, SelectorError};

/// Reads a whole selector.
pub fn parse(text: &str) -> Result<Selector, SelectorError> {
    if text.len() > MAX_BYTES {
        return Err(too_long());
    }
    let mut parser = Parser { text, at: 0, nesting: 0 };
    let selector = parser.selector().map_err(|refusal| SelectorError {
        column: text.get(..refusal.at).map_or(0, |before| before.chars().count()) + 1,
        message: refusal.message,
    })?;
    // Written back it has spaces around operators, and must be read again like that.
    if selector.to_string().len() > MAX_BYTES { Err(too_long()) } else { Ok(selector) }
}

/// True for a category that reads back without quotes.
pub fn is_plain_category(text: &str) -> bool {
    is_plain(text) && !text.contains('=') && !text.ends_with('!')
}

/// True for a tag that reads back without quotes.
pub fn is_plain_tag(text: &str) -> bool {
    is_plain(text) && !text.starts_with('=')
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && plain(text).len() == text.len()
}

fn too_long() -> SelectorError {
    SelectorError { column: 1, message: format!("a selector has at most {MAX_BYTES} bytes") }
}

struct Parser<'a> {
    text: &'a str,
    /// Offset of the first byte not read yet; always on a character boundary.
    at: usize,
    /// Parentheses and `!` that are open.
    nesting: usize,
}

struct Refusal {
    at: usize,
    message: String,
}

const A_TERM: &str = "a term such as tag:Language=Java, '!' or '('";
const BETWEEN: &str = "'&&', '||'";
const QUOTES: &str = "text with spaces, parentheses or quotes needs double quotes around it";

impl<'a> Parser<'a> {
    fn selector(&mut self) -> Result<Selector, Refusal> {
        self.skip_spaces();
        if self.rest().is_empty() {
            return Ok(Selector::default());
        }
        let rule = self.any()?;
        if self.rest().is_empty() {
            return Ok(Selector { rule: Some(rule) });
        }
        self.refuse(&format!("{BETWEEN} or the end; {QUOTES}"))
    }

    fn any(&mut self) -> Result<Rule, Refusal> {
        let mut rule = self.all()?;
        while self.skip("||") {
            rule = rule.or(self.all()?);
        }
        Ok(rule)
    }

    fn all(&mut self) -> Result<Rule, Refusal> {
        let mut rule = self.one()?;
        while self.skip("&&") {
            rule = rule.and(self.one()?);
        }
        Ok(rule)
    }

    /// One operand and the spaces behind it.
    fn one(&mut self) -> Result<Rule, Refusal> {
        self.skip_spaces();
        let start = self.at;
        let rule = if self.skip("!") {
            self.nested(start, |parser| Ok(Rule::Not(Box::new(parser.one()?))))?
        } else if self.skip("(") {
            self.nested(start, Self::parenthesized)?
        } else {
            self.term()?
        };
        self.skip_spaces();
        Ok(rule)
    }

    fn nested(
        &mut self,
        start: usize,
        read: impl FnOnce(&mut Self) -> Result<Rule, Refusal>,
    ) -> Result<Rule, Refusal> {
        if self.nesting == MAX_NESTING {
            let message = format!("at most {MAX_NESTING} parentheses and '!' may be open at once");
            return Err(Refusal { at: start, message });
        }
        self.nesting += 1;
        let rule = read(self)?;
        self.nesting -= 1;
        Ok(rule)
    }

    fn parenthesized(&mut self) -> Result<Rule, Refusal> {
        let rule = self.any()?;
        if self.skip(")") { Ok(rule) } else { self.refuse(&format!("{BETWEEN} or ')'; {QUOTES}")) }
    }

    /// `tag:Category` or `tag:Category=Tag`.
    fn term(&mut self) -> Result<Rule, Refusal> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let rest = self.rest();
        let predicate = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        if predicate.is_empty() || !rest[predicate.len()..].starts_with(':') {
            return self.refuse(A_TERM);
        }
        if predicate != "tag" {
            let message = format!("unknown predicate '{predicate}', expected 'tag'");
            return Err(Refusal { at: self.at, message });
        }
        self.at += "tag:".len();
        let category = self.category()?;
        let tag = if self.skip("=") { Some(self.tag()?) } else { None };
        Ok(Rule::Tag { category, tag })
    }

    fn category(&mut self) -> Result<String, Refusal> {
        if self.rest().starts_with('"') {
            return self.quoted("a category");
        }
        let plain = plain(self.rest());
        let category = plain.split('=').next().unwrap_or_default();
        if category.is_empty() {
            return self.refuse("a category such as Language");
        }
        if category.ends_with('!') && plain.len() > category.len() {
            self.at += category.len() - 1;
            return self.refuse("'='; to negate, put '!' before 'tag:'");
        }
        self.at += category.len();
        Ok(category.to_owned())
    }

    fn tag(&mut self) -> Result<String, Refusal> {
        if self.rest().starts_with('"') {
            return self.quoted("a tag");
        }
        let tag = plain(self.rest());
        if tag.is_empty() || tag.starts_with('=') {
            return self.refuse("a tag such as Java; without '=' any tag of the category matches");
        }
        self.at += tag.len();
        Ok(tag.to_owned())
    }

    /// Text in double quotes, which may not be empty.
    fn quoted(&mut self, what: &str) -> Result<String, Refusal> {
        let start = self.at;
        let mut text = String::new();
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((offset, character)) = characters.next() {
            match character {
                '"' if text.is_empty() => {
                    return Err(Refusal { at: start, message: format!("{what} must not be empty") });
                }
                '"' => {
                    self.at += offset + 1;
                    return Ok(text);
                }
                '\\' => {
                    let Some((_, escaped @ ('"' | '\\'))) = characters.next() else {
                        self.at += offset + 1;
                        return self.refuse("'\"' or '\\' after '\\'");
                    };
                    text.push(escaped);
                }
                _ => text.push(character),
            }
        }
        Err(Refusal { at: start, message: "these quotes are never closed".to_owned() })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, sign: &str) -> bool {
        let skip = self.rest().starts_with(sign);
        self.at += if skip { sign.len() } else { 0 };
        skip
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// Refuses what stands here.
    fn refuse<T>(&self, expected: &str) -> Result<T, Refusal> {
        let rest = self.rest();
        let found = match (rest.chars().next(), plain(rest)) {
            (None, _) => "the end".to_owned(),
            (Some(_), "") if rest.starts_with("&&") || rest.starts_with("||") => format!("'{}'", &rest[..2]),
            (Some(first), "") if first.is_whitespace() => "a space".to_owned(),
            (Some(first), "") => format!("'{first}'"),
            (Some(_), text) => format!("'{}'", shortened(text)),
        };
        Err(Refusal { at: self.at, message: format!("found {found}, expected {expected}") })
    }
}

/// What stands at the start and needs no quotes.
fn plain(text: &str) -> &str {
    let ends = |(offset, character): (usize, char)| {
        let rest = &text[offset..];
        let sign = matches!(character, '(' | ')' | '"') || rest.starts_with("&&") || rest.starts_with("||");
        (sign || character.is_whitespace()).then_some(offset)
    };
    &text[..text.char_indices().find_map(ends).unwrap_or(text.len())]
}

/// Enough of a text to find it again.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 32;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
