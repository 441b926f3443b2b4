//! Documents with expressions in them: every text may contain `{{ expression }}`.
//!
//! A text that is one expression and nothing else becomes its value, whatever type that has; otherwise values are written
//! into the text. Keys of maps are not looked into.

use serde_json::{Map, Value as Json};

use super::check::Type;
use super::evaluate::Scope;
use super::{CelError, Program};

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
/// Maps and lists one inside the other.
const MAX_DEPTH: usize = 64;

/// A document whose expressions were read.
#[derive(Debug, Clone, PartialEq)]
pub enum Template {
    /// Has no expressions.
    Fixed(Json),
    /// Is the value of an expression.
    Whole(Program),
    /// Is a text with values in it.
    Text(Vec<Piece>),
    /// A list.
    List(Vec<Template>),
    /// A map.
    Map(Vec<(String, Template)>),
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// Stays as it is.
    Fixed(String),
    /// Is replaced by its value.
    Value(Program),
}

/// Why a template cannot be used, and where in the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// Path of the text, such as `.spec.command[1]`.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

impl TemplateError {
    fn of(path: &str, error: &CelError) -> Self {
        Self { path: path.to_owned(), message: error.to_string() }
    }
}

impl Template {
    /// Reads a document whose expressions may use these names.
    pub fn compile(document: &Json, names: &[(&str, Type)]) -> Result<Self, TemplateError> {
        compile(document, names, "", 0)
    }

    /// The document over these names.
    pub fn render(&self, scope: &Scope<'_>) -> Result<Json, TemplateError> {
        self.render_at(scope, "")
    }

    fn render_at(&self, scope: &Scope<'_>, path: &str) -> Result<Json, TemplateError> {
        match self {
            Self::Fixed(json) => Ok(json.clone()),
            Self::Whole(program) => {
                program.evaluate_to_json(scope).map_err(|error| TemplateError::of(path, &error))
            }
            Self::Text(pieces) => {
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Fixed(fixed) => text.push_str(fixed),
                        Piece::Value(program) => {
                            let value = program.evaluate_to_text(scope);
                            text.push_str(&value.map_err(|error| TemplateError::of(path, &error))?);
                        }
                    }
                }
                Ok(Json::String(text))
            }
            Self::List(elements) => {
                let render =
                    |(place, element): (usize, &Self)| element.render_at(scope, &format!("{path}[{place}]"));
                elements.iter().enumerate().map(render).collect()
            }
            Self::Map(entries) => {
                let render = |(key, value): &(String, Self)| {
                    Ok((key.clone(), value.render_at(scope, &format!("{path}.{key}"))?))
                };
                entries.iter().map(render).collect::<Result<Map<_, _>, _>>().map(Json::Object)
            }
        }
    }
}

fn compile(
    document: &Json,
    names: &[(&str, Type)],
    path: &str,
    depth: usize,
) -> Result<Template, TemplateError> {
    if depth > MAX_DEPTH {
        let message = format!("more than {MAX_DEPTH} maps and lists one inside the other");
        return Err(TemplateError { path: path.to_owned(), message });
    }
    let template = match document {
        Json::String(text) if text.contains(OPEN) => return compile_text(text, names, path),
        Json::Array(elements) => {
            let compile = |(place, element): (usize, &Json)| {
                compile(element, names, &format!("{path}[{place}]"), depth + 1)
            };
            Template::List(elements.iter().enumerate().map(compile).collect::<Result<_, _>>()?)
        }
        Json::Object(entries) => {
            let compile = |(key, value): (&String, &Json)| {
                Ok((key.clone(), compile(value, names, &format!("{path}.{key}"), depth + 1)?))
            };
            Template::Map(entries.iter().map(compile).collect::<Result<_, _>>()?)
        }
        other => return Ok(Template::Fixed(other.clone())),
    };
    let is_fixed = match &template {
        Template::List(elements) => elements.iter().all(Template::is_fixed),
        Template::Map(entries) => entries.iter().all(|(_, value)| value.is_fixed()),
        _ => false,
    };
    Ok(if is_fixed { Template::Fixed(document.clone()) } else { template })
}

impl Template {
    /// The same, but what is one expression and nothing else becomes a text, too: for fields that are texts.
    #[must_use]
    pub fn into_text(self) -> Self {
        match self {
            Self::Whole(program) => Self::Text(vec![Piece::Value(program)]),
            Self::List(elements) => Self::List(elements.into_iter().map(Self::into_text).collect()),
            Self::Map(entries) => {
                Self::Map(entries.into_iter().map(|(key, value)| (key, value.into_text())).collect())
            }
            Self::Fixed(_) | Self::Text(_) => self,
        }
    }

    /// The same with each entry of a map changed.
    #[must_use]
    pub fn map_entries(self, change: impl Fn(&str, Self) -> Self) -> Self {
        match self {
            Self::Map(entries) => {
                let change = |(key, value): (String, Self)| {
                    let value = change(&key, value);
                    (key, value)
                };
                Self::Map(entries.into_iter().map(change).collect())
            }
            other => other,
        }
    }

    fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }
}

fn compile_text(text: &str, names: &[(&str, Type)], path: &str) -> Result<Template, TemplateError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find(OPEN) {
        let inside = &rest[open + OPEN.len()..];
        let Some(close) = close_of(inside) else {
            let message = format!("{OPEN:?} has no {CLOSE:?}");
            return Err(TemplateError { path: path.to_owned(), message });
        };
        if open > 0 {
            pieces.push(Piece::Fixed(rest[..open].to_owned()));
        }
        let program = Program::compile(inside[..close].trim(), names, Type::Any);
        pieces.push(Piece::Value(program.map_err(|error| TemplateError::of(path, &error))?));
        rest = &inside[close + CLOSE.len()..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Fixed(rest.to_owned()));
    }
    match <[Piece; 1]>::try_from(pieces) {
        Ok([Piece::Value(program)]) => Ok(Template::Whole(program)),
        Ok(one) => Ok(Template::Text(one.into())),
        Err(pieces) => Ok(Template::Text(pieces)),
    }
}

/// Where the expression ends: `}}` may also close maps inside it, so the last of a run of braces counts.
fn close_of(inside: &str) -> Option<usize> {
    let close = inside.find(CLOSE)?;
    let more =
        inside[close + CLOSE.len()..].len() - inside[close + CLOSE.len()..].trim_start_matches('}').len();
    Some(close + more)
}
