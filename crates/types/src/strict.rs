//! Reading objects from objects only, with a note of every field that no type knows.
//!
//! Types that derive `Deserialize` also take a list in the place of an object, its items for their fields in order
//! of declaration. For a client that is a mistake to be told about, not a request to be carried out: here a
//! list is refused wherever fields are expected, at every depth. Everything else is read as it was.
//!
//! What is skipped is noted by where it lies in the text; nothing is done for what is known.

use std::cell::RefCell;
use std::fmt;

use serde::Deserialize;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde_json::value::RawValue;

/// Enough to help; a hostile body may hold millions.
const MOST_SKIPPED: usize = 64;

/// Reads JSON text. Tells where in it the values lie that no type knows, in the order of the text.
pub fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<(T, Vec<usize>)> {
    let skipped = Skipped::default();
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = T::deserialize(Strict(&mut deserializer, &skipped))?;
    deserializer.end()?;
    let begin = json.as_ptr().addr();
    let places = skipped.0.into_inner().into_iter().map(|address| address - begin).collect();
    Ok((value, places))
}

/// The addresses of values that were skipped.
#[derive(Default)]
struct Skipped(RefCell<Vec<usize>>);

impl Skipped {
    fn note(&self, value: &RawValue) {
        let mut all = self.0.borrow_mut();
        if all.len() < MOST_SKIPPED {
            all.push(value.get().as_ptr().addr());
        }
    }
}

/// Whatever is read through this takes no lists for objects.
struct Strict<'s, T>(T, &'s Skipped);

/// Forwards methods that hand a visitor on.
macro_rules! forward {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {
        $(fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($argument,)* Strict(visitor, self.1))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<'_, D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Strict(visitor, self.1))
    }

    forward! {
        deserialize_any(); deserialize_bool();
        deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64(); deserialize_i128();
        deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64(); deserialize_u128();
        deserialize_f32(); deserialize_f64(); deserialize_char(); deserialize_str(); deserialize_string();
        deserialize_bytes(); deserialize_byte_buf(); deserialize_option(); deserialize_unit();
        deserialize_unit_struct(name: &'static str); deserialize_newtype_struct(name: &'static str);
        deserialize_seq(); deserialize_tuple(len: usize); deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map(); deserialize_enum(name: &'static str, variants: &'static [&'static str]);
        deserialize_identifier();
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.1.note(<&RawValue>::deserialize(self.0)?);
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

/// Forwards what is found as it is.
macro_rules! visit {
    ($($method:ident($type:ty);)*) => {
        $(fn $method<E: Error>(self, found: $type) -> Result<V::Value, E> {
            self.0.$method(found)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Strict<'_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    visit! {
        visit_bool(bool); visit_i8(i8); visit_i16(i16); visit_i32(i32); visit_i64(i64); visit_i128(i128);
        visit_u8(u8); visit_u16(u16); visit_u32(u32); visit_u64(u64); visit_u128(u128);
        visit_f32(f32); visit_f64(f64); visit_char(char); visit_str(&str); visit_borrowed_str(&'de str);
        visit_string(String); visit_bytes(&[u8]); visit_borrowed_bytes(&'de [u8]); visit_byte_buf(Vec<u8>);
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, found: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Strict(found, self.1))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, found: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Strict(found, self.1))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Strict(items, self.1))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Strict(entries, self.1))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, found: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(Strict(found, self.1))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Strict<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, found: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Strict(found, self.1))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.0.next_element_seed(Strict(seed, self.1))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.0.next_key_seed(Strict(seed, self.1))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.0.next_value_seed(Strict(seed, self.1))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, 's, A: EnumAccess<'de>> EnumAccess<'de> for Strict<'s, A> {
    type Error = A::Error;
    type Variant = Strict<'s, A::Variant>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self::Variant), A::Error> {
        let skipped = self.1;
        let (value, variant) = self.0.variant_seed(Strict(seed, skipped))?;
        Ok((value, Strict(variant, skipped)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Strict<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        self.0.newtype_variant_seed(Strict(seed, self.1))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(len, Strict(visitor, self.1))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, Strict(visitor, self.1))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(default)]
    struct Outer {
        inner: Option<Inner>,
        list: Vec<Inner>,
        pair: (u8, String),
        any: Value,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    struct Inner {
        number: u8,
    }

    impl Default for Outer {
        fn default() -> Self {
            Self { inner: None, list: Vec::new(), pair: (0, String::new()), any: Value::Null }
        }
    }

    #[test]
    fn objects_and_lists_are_read_where_they_belong() {
        let document = json!({"inner": {"number": 1}, "list": [{"number": 2}], "pair": [3, "x"], "any": [[1], {"a": [2]}]});
        let lenient: Outer = serde_json::from_value(document.clone()).unwrap();
        assert_eq!(from_slice::<Outer>(document.to_string().as_bytes()).unwrap(), (lenient, Vec::new()));
    }

    #[test]
    fn a_list_is_refused_where_fields_are_expected() {
        for document in [json!([]), json!({"inner": [1]}), json!({"list": [[1]]})] {
            let error = from_slice::<Outer>(document.to_string().as_bytes()).unwrap_err().to_string();
            assert!(error.contains("invalid type: sequence, expected struct"), "{document}: {error}");
        }
    }

    #[test]
    fn what_follows_a_document_is_refused() {
        assert!(from_slice::<Inner>(b"{\"number\":1} x").is_err());
    }

    #[test]
    fn what_no_type_knows_is_noted_by_its_place() {
        let skipped = |json: &str| {
            let (_, places) = from_slice::<Outer>(json.as_bytes()).unwrap();
            places.into_iter().map(|place| json[place..].to_owned()).collect::<Vec<_>>()
        };
        let json = r#"{"other": {"a": [1]}, "inner": {"number": 1, "more":7}, "any": {"free": 1}}"#;
        assert_eq!(skipped(json), [&json[10..], &json[json.find('7').unwrap()..]]);
        assert_eq!(skipped(r#"{"list": [{"number": 1}]}"#), [""; 0]);
        let many = format!("{{{}}}", (0..100).map(|n| format!("\"f{n}\":{n}")).collect::<Vec<_>>().join(","));
        assert_eq!(skipped(&many).len(), MOST_SKIPPED);
    }
}
