//! Decodes values that are written as text, without copying the text first.

use std::fmt::{self, Display};
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{Error, Unexpected, Visitor};

/// Decodes a string with `read`.
pub fn decode_text<'de, D, T, E>(
    deserializer: D,
    expecting: &'static str,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: Display,
{
    deserializer.deserialize_str(TextVisitor { expecting, read, result: PhantomData, numbers: false })
}

/// Decodes a string, or a number as if it had been written in quotes, with `read`.
pub fn decode_text_or_number<'de, D, T, E>(
    deserializer: D,
    expecting: &'static str,
    read: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    E: Display,
{
    deserializer.deserialize_any(TextVisitor { expecting, read, result: PhantomData, numbers: true })
}

struct TextVisitor<F, T, E> {
    expecting: &'static str,
    read: F,
    result: PhantomData<fn() -> Result<T, E>>,
    numbers: bool,
}

impl<F, T, E> TextVisitor<F, T, E>
where
    F: FnOnce(&str) -> Result<T, E>,
    E: Display,
{
    fn visit_number<D: Error>(self, number: impl Display, unexpected: Unexpected<'_>) -> Result<T, D> {
        if self.numbers {
            self.visit_str(&number.to_string())
        } else {
            Err(D::invalid_type(unexpected, &self))
        }
    }
}

impl<F, T, E> Visitor<'_> for TextVisitor<F, T, E>
where
    F: FnOnce(&str) -> Result<T, E>,
    E: Display,
{
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expecting)
    }

    fn visit_str<D: Error>(self, text: &str) -> Result<T, D> {
        (self.read)(text).map_err(D::custom)
    }

    fn visit_u64<D: Error>(self, number: u64) -> Result<T, D> {
        self.visit_number(number, Unexpected::Unsigned(number))
    }

    fn visit_i64<D: Error>(self, number: i64) -> Result<T, D> {
        self.visit_number(number, Unexpected::Signed(number))
    }

    fn visit_f64<D: Error>(self, number: f64) -> Result<T, D> {
        self.visit_number(number, Unexpected::Float(number))
    }
}
