//! The types of AMQP 0-9-1, written and read.

/// Writes values one behind the other.
#[derive(Debug, Default)]
pub struct Encoder(pub Vec<u8>);

impl Encoder {
    pub fn octet(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub fn short(&mut self, value: u16) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub fn long(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    pub fn long_long(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_be_bytes());
        self
    }

    /// A text of at most 255 bytes; what is longer is cut.
    pub fn text(&mut self, text: &str) -> &mut Self {
        let cut = &text.as_bytes()[..text.floor_char_boundary(255)];
        self.octet(u8::try_from(cut.len()).unwrap_or(u8::MAX));
        self.0.extend_from_slice(cut);
        self
    }

    pub fn long_text(&mut self, bytes: &[u8]) -> &mut Self {
        self.long(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.0.extend_from_slice(bytes);
        self
    }

    /// A table of texts.
    pub fn table(&mut self, fields: &[(&str, Field<'_>)]) -> &mut Self {
        let mut inner = Self::default();
        for (name, field) in fields {
            inner.text(name);
            match *field {
                Field::Text(text) => inner.octet(b'S').long_text(text.as_bytes()),
                Field::Flag(flag) => inner.octet(b't').octet(u8::from(flag)),
                Field::Flags(names) => {
                    let flags: Vec<_> = names.iter().map(|name| (*name, Field::Flag(true))).collect();
                    inner.octet(b'F').table(&flags)
                }
            };
        }
        self.long_text(&inner.0)
    }
}

/// A value in a table.
#[derive(Debug, Clone, Copy)]
pub enum Field<'a> {
    Text(&'a str),
    Flag(bool),
    /// A table of flags that are all set.
    Flags(&'a [&'a str]),
}

/// Reads values one behind the other; `None` if there are too few bytes.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<'a>(pub &'a [u8]);

impl<'a> Decoder<'a> {
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn octet(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub fn short(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    pub fn long(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    pub fn long_long(&mut self) -> Option<u64> {
        Some(u64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    pub fn text(&mut self) -> Option<&'a str> {
        let count = self.octet()?;
        std::str::from_utf8(self.take(count.into())?).ok()
    }

    pub fn long_text(&mut self) -> Option<&'a [u8]> {
        let count = self.long()?;
        self.take(count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mut encoder = Encoder::default();
        encoder.octet(1).short(2).long(3).long_long(4).text("fünf").long_text(b"six");
        let mut decoder = Decoder(&encoder.0);
        assert_eq!((decoder.octet(), decoder.short(), decoder.long()), (Some(1), Some(2), Some(3)));
        assert_eq!((decoder.long_long(), decoder.text()), (Some(4), Some("fünf")));
        assert_eq!((decoder.long_text(), decoder.octet()), (Some(&b"six"[..]), None));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let mut encoder = Encoder::default();
        encoder.text(&"ü".repeat(200));
        assert_eq!(Decoder(&encoder.0).text().map(str::len), Some(254));
    }
}
