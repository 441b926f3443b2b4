//! Expressions as trees.

use std::sync::Arc;

use regex::Regex;

/// One expression and where it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Offset in the text.
    pub at: usize,
    /// How many nodes lie one below the other; limited, so that walks may recurse.
    pub depth: usize,
    /// What it is.
    pub kind: Kind,
}

/// What an expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `null`, `true`, `1`, `1.5`, `'a'`.
    Literal(Literal),
    /// `name`.
    Name(String),
    /// `[a, b]`.
    List(Vec<Node>),
    /// `{a: b}`.
    Map(Vec<(Node, Node)>),
    /// `a.field`.
    Field(Box<Node>, String),
    /// `has(a.field)`.
    Has(Box<Node>, String),
    /// `a[b]`.
    Index(Box<Node>, Box<Node>),
    /// `!a`.
    Not(Box<Node>),
    /// `-a`.
    Negate(Box<Node>),
    /// `a || b || c`.
    Any(Vec<Node>),
    /// `a && b && c`.
    All(Vec<Node>),
    /// `a ? b : c`.
    Choice(Box<[Node; 3]>),
    /// `a + b`.
    Binary(Operator, Box<[Node; 2]>),
    /// `a.all(x, b)` and its like.
    Loop(Box<Loop>),
    /// `f(a, b)` or `a.f(b)`, where the receiver is the first argument.
    Call(Call),
}

/// A literal.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// `1`
    Int(i64),
    /// `1.5`
    Double(f64),
    /// `'a'`
    Text(Arc<str>),
}

/// Operators between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `in`
    In,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl Operator {
    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

/// A macro that looks at each element.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// Which.
    pub what: LoopKind,
    /// What is looked at.
    pub over: Node,
    /// What an element is called.
    pub name: String,
    /// Which elements; always there but for `map` with two arguments.
    pub test: Option<Node>,
    /// What becomes of an element, of `map` alone.
    pub body: Option<Node>,
}

/// The macros that look at each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopKind {
    /// All elements pass the test.
    All,
    /// At least one does.
    Exists,
    /// Exactly one does.
    ExistsOne,
    /// What becomes of each.
    Map,
    /// Those that do.
    Filter,
}

/// A call of a function.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// True for `a.f(b)`.
    pub is_method: bool,
    /// Its arguments; the receiver is the first.
    pub arguments: Vec<Node>,
    /// The pattern of `matches`, if it is known beforehand.
    pub pattern: Option<Regex>,
}

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.is_method == other.is_method && self.arguments == other.arguments
    }
}
