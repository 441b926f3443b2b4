//! CEL, the expression language of conditions, preconditions and templates: `resource.spec.size > 3 && !available`.
//!
//! Own, small and total (`docs/decisions/0014-own-cel.md`): an expression is read and its types are checked once, with the
//! place of a mistake shown; what evaluating it costs is counted in steps and in bytes and stops at a limit, so no stored text can
//! hang or crash the server.
//!
//! Covered: literals (int, uint as int, double, strings with their escapes and raw forms, lists, maps, null), `? :`, `||`,
//! `&&`, `!`, `-`, `== != < <= > >= in`, `+ - * / %`, fields, indexes, the macros `has`, `all`, `exists`, `exists_one`,
//! `map`, `filter`, and the functions of [`functions`]. `||` and `&&` are commutative as CEL says: an error on one side is
//! forgiven when the other side decides. Not covered: bytes, messages, `type`, optionals.
//!
//! Start here: [`Program::compile`] and [`Program::evaluate`].

mod check;
mod evaluate;
pub mod functions;
mod lexer;
mod meter;
mod operators;
mod parser;
mod syntax;
pub mod template;
mod value;

pub use check::Type;
pub use evaluate::Scope;
pub use meter::{Budget, Cost};
pub use template::Template;
pub use value::Value;

use meter::Meter;
use serde_json::Value as Json;
use syntax::Node;

/// Bytes of one expression.
pub const MAX_BYTES: usize = 4096;

/// Why an expression cannot be read or has no value, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct CelError {
    /// Line of the mistake, from 1.
    pub line: usize,
    /// Column of the mistake in its line, in characters, from 1.
    pub column: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

/// A mistake at an offset of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mistake {
    at: usize,
    message: String,
}

impl Mistake {
    fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    fn place_in(self, text: &str) -> CelError {
        let before = text.get(..self.at).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        CelError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: self.message,
        }
    }
}

/// An expression that was read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    text: String,
    root: Node,
}

impl Program {
    /// Reads an expression over these names, which must give a value of this type.
    pub fn compile(text: &str, names: &[(&str, Type)], wanted: Type) -> Result<Self, CelError> {
        let place = |mistake: Mistake| mistake.place_in(text);
        if text.len() > MAX_BYTES {
            let message = format!("an expression has at most {MAX_BYTES} bytes");
            return Err(place(Mistake::new(0, message)));
        }
        let root = parser::parse(text).map_err(place)?;
        let found = check::check(&root, names).map_err(place)?;
        if !found.fits(wanted) {
            let message = format!("gives {found}, where {wanted} is needed");
            return Err(place(Mistake::new(root.at, message)));
        }
        Ok(Self { text: text.to_owned(), root })
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its value over these names.
    pub fn evaluate<'a>(&self, scope: &Scope<'a>) -> Result<Value<'a>, CelError> {
        self.evaluate_to(scope, |value, _| Ok(value))
    }

    /// Its value as a document; instants and lengths of time become text.
    pub fn evaluate_to_json(&self, scope: &Scope<'_>) -> Result<Json, CelError> {
        self.evaluate_to(scope, |value, meter| value.to_json(meter, self.root.at))
    }

    /// Its value as a text: of a string itself, of anything else what it looks like.
    pub fn evaluate_to_text(&self, scope: &Scope<'_>) -> Result<String, CelError> {
        self.evaluate_to(scope, |value, meter| value.to_text(meter, self.root.at))
    }

    fn evaluate_to<'a, T>(
        &self,
        scope: &Scope<'a>,
        convert: impl FnOnce(Value<'a>, &Meter<'_>) -> Result<T, Mistake>,
    ) -> Result<T, CelError> {
        let meter = Meter::new(scope.budget());
        let value = evaluate::evaluate(&self.root, scope, &meter).and_then(|value| convert(value, &meter));
        value.map_err(|mistake| mistake.place_in(&self.text))
    }

    /// Whether it holds; an error if it gives anything but true or false.
    pub fn holds(&self, scope: &Scope<'_>) -> Result<bool, CelError> {
        match self.evaluate(scope)? {
            Value::Bool(value) => Ok(value),
            other => {
                let message = format!("gives {}, where bool is needed", other.type_name());
                Err(Mistake::new(self.root.at, message).place_in(&self.text))
            }
        }
    }
}
