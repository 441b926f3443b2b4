//! Just enough protobuf for what stock clients insist on: reading the questions of `kubectl auth`, and writing the
//! one document that kubectl takes in no other form.

use std::collections::BTreeMap;

/// What precedes every object of Kubernetes in protobuf.
const MAGIC: &[u8] = b"k8s\0";
/// Fields read from one message; none that is read here has more.
const MAX_FIELDS: usize = 64;

/// An object taken out of its envelope.
#[derive(Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// `group/version`.
    pub api_version: &'a str,
    /// Kind.
    pub kind: &'a str,
    /// The object itself.
    pub object: Message<'a>,
}

/// The text and message fields of a message, by number; of a repeated field the last.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Message<'a>(BTreeMap<u64, &'a [u8]>);

impl<'a> Envelope<'a> {
    /// Opens an envelope; `None` if it is not one.
    pub fn open(bytes: &'a [u8]) -> Option<Self> {
        let envelope = Message::read(bytes.strip_prefix(MAGIC)?)?;
        let type_meta = envelope.message(1)?;
        Some(Self { api_version: type_meta.text(1)?, kind: type_meta.text(2)?, object: envelope.message(2)? })
    }
}

impl<'a> Message<'a> {
    fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let mut fields = BTreeMap::new();
        for _ in 0..MAX_FIELDS {
            if bytes.is_empty() {
                return Some(Self(fields));
            }
            let key = take_number(&mut bytes)?;
            match key & 7 {
                0 => drop(take_number(&mut bytes)?),
                1 => drop(take(&mut bytes, 8)?),
                2 => {
                    let length = usize::try_from(take_number(&mut bytes)?).ok()?;
                    fields.insert(key >> 3, take(&mut bytes, length)?);
                }
                5 => drop(take(&mut bytes, 4)?),
                _ => return None,
            }
        }
        None
    }

    /// A text field, empty if it is not there; `None` if it is not text.
    pub fn text(&self, number: u64) -> Option<&'a str> {
        std::str::from_utf8(self.0.get(&number).copied().unwrap_or_default()).ok()
    }

    /// A message field, empty if it is not there; `None` if it is not a message.
    pub fn message(&self, number: u64) -> Option<Self> {
        Self::read(self.0.get(&number).copied().unwrap_or_default())
    }

    /// True if the field is there.
    pub fn has(&self, number: u64) -> bool {
        self.0.contains_key(&number)
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = *take(bytes, 1)?.first()?;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// A field that holds a text or a message.
pub fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap_or_default());
    out.extend_from_slice(content);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enveloped(object: &[u8]) -> Vec<u8> {
        let type_meta = [field(1, b"authorization.k8s.io/v1"), field(2, b"SelfSubjectAccessReview")].concat();
        [MAGIC, &field(1, &type_meta), &field(2, object), &field(4, b"")].concat()
    }

    #[test]
    fn an_envelope_gives_kind_and_object() {
        let bytes = enveloped(&field(2, &field(1, &field(5, "tasks".repeat(50).as_bytes()))));
        let envelope = Envelope::open(&bytes).unwrap();
        assert_eq!(
            (envelope.api_version, envelope.kind),
            ("authorization.k8s.io/v1", "SelfSubjectAccessReview")
        );
        let attributes = envelope.object.message(2).unwrap().message(1).unwrap();
        assert_eq!(attributes.text(5), Some(&*"tasks".repeat(50)));
        assert_eq!(attributes.text(6), Some(""));
        assert!(!attributes.has(6));
    }

    #[test]
    fn what_is_cut_short_is_no_envelope() {
        let bytes = enveloped(b"");
        assert!((5..40).all(|end| Envelope::open(&bytes[..end]).is_none()));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            drop(Envelope::open(&[MAGIC, &bytes].concat()));
        }
    }
}
