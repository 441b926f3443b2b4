//! Durations, quantities, instants, addresses of brokers and robots' constraints: what is one short text.

use std::fmt::{Debug, Display};
use std::str::FromStr;

use muster_fleet_mqtt::BrokerUrl;
use muster_store_sql::Target as Database;
use muster_types::timestamp::{MicroTimestamp, MilliTimestamp};
use muster_types::{Duration, Quantity, Timestamp, name_rules};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Target;

pub const SCALARS: Target = Target {
    name: "scalars",
    property: "what is written of a duration, a quantity or an instant reads back as the same, as a text and in JSON; an address that is \
               shown leads to the same place and has no password in it",
    run: scalars,
};

fn scalars(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    reads_back::<Duration>(text);
    reads_back::<Quantity>(text);
    reads_back::<Timestamp>(text);
    reads_back::<MilliTimestamp>(text);
    reads_back::<MicroTimestamp>(text);
    if let Ok(duration) = text.parse::<Duration>() {
        assert!(duration <= Duration::MAX, "{duration}");
    }
    if let Ok(quantity) = text.parse::<Quantity>() {
        assert!(u128::from(quantity.value()) * 1000 >= quantity.milli(), "{quantity}");
    }
    broker(text);
    drop(Database::parse(text, |_| None));
    let label = name_rules::dns1123_label(text).is_ok();
    assert!(
        !label || (name_rules::qualified_name(text).is_ok() && name_rules::label_value(text).is_ok()),
        "{text:?}"
    );
}

fn reads_back<T>(text: &str)
where
    T: FromStr<Err: Debug> + Display + Debug + PartialEq + Serialize + DeserializeOwned,
{
    let quoted = serde_json::to_string(text).unwrap();
    let read = text.parse::<T>();
    let from_json = serde_json::from_str::<T>(&quoted);
    assert_eq!(
        from_json.is_ok(),
        read.is_ok(),
        "JSON and text differ on {text:?}: {from_json:?} and {read:?}"
    );
    // A number in JSON may be one too.
    if let Ok(value) = serde_json::from_str::<T>(text) {
        let again: T = value.to_string().parse().unwrap_or_else(|error| panic!("{value}: {error:?}"));
        assert_eq!(again, value);
    }
    let Ok(value) = read else { return };
    let written = value.to_string();
    let again: T =
        written.parse().unwrap_or_else(|error| panic!("{text:?} is written {written:?}: {error:?}"));
    assert_eq!(again, value, "{text:?} is written {written:?}");
    let json = serde_json::to_string(&value).unwrap();
    assert_eq!(serde_json::from_str::<T>(&json).ok().as_ref(), Some(&value), "{json}");
}

fn broker(text: &str) {
    let Ok(url) = BrokerUrl::parse(text) else { return };
    let public = url.public();
    let again =
        BrokerUrl::parse(&public).unwrap_or_else(|error| panic!("{text:?} is shown as {public:?}: {error}"));
    assert_eq!(again, BrokerUrl { login: None, ..url.clone() }, "{text:?} is shown as {public:?}");
}
