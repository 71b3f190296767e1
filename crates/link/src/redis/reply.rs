//! Parses the replies of Redis to commands on streams.

use redis::Value;

/// An entry of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: String,
    /// Its first field, by name and value; none for an entry that has left the stream.
    pub(super) field: Option<(String, Vec<u8>)>,
}

/// The entries of XREADGROUP on one stream.
pub(super) fn read(reply: Value) -> Vec<Entry> {
    let stream = match reply {
        Value::Array(streams) => streams.into_iter().next(),
        // As RESP3 writes it.
        Value::Map(streams) => return streams.into_iter().next().map(|(_, list)| entries(list)).unwrap_or_default(),
        _ => None,
    };
    stream.and_then(|stream| array(stream).into_iter().nth(1)).map(entries).unwrap_or_default()
}

/// The next cursor of XAUTOCLAIM, the claimed entries, and the ids of those that have left the stream.
pub(super) fn claimed(reply: Value) -> (String, Vec<Entry>, Vec<String>) {
    let mut parts = array(reply).into_iter();
    let mut next = || parts.next().unwrap_or(Value::Nil);
    (text(next()), entries(next()), array(next()).into_iter().map(text).collect())
}

/// A member of the answer to XINFO.
pub(super) fn member(reply: &Value, name: &str) -> Option<Value> {
    let is_name = |key: &Value| text(key.clone()) == name;
    match reply {
        Value::Array(flat) => flat.chunks_exact(2).find(|pair| is_name(&pair[0])).map(|pair| pair[1].clone()),
        Value::Map(pairs) => pairs.iter().find(|(key, _)| is_name(key)).map(|(_, value)| value.clone()),
        _ => None,
    }
}

pub(super) fn array(value: Value) -> Vec<Value> {
    if let Value::Array(values) = value { values } else { Vec::new() }
}

pub(super) fn text(value: Value) -> String {
    String::from_utf8_lossy(&bytes(value)).into_owned()
}

fn bytes(value: Value) -> Vec<u8> {
    match value {
        Value::BulkString(bytes) => bytes,
        Value::SimpleString(text) => text.into_bytes(),
        _ => Vec::new(),
    }
}

pub(super) fn entries(list: Value) -> Vec<Entry> {
    let entry = |value: Value| {
        let mut parts = array(value).into_iter();
        let id = text(parts.next()?);
        let mut fields = array(parts.next()?).into_iter();
        let field = fields.next().map(|name| (text(name), fields.next().map(bytes).unwrap_or_default()));
        Some(Entry { id, field })
    };
    array(list).into_iter().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn reads_entries_and_those_that_have_left() {
        let there = Value::Array(vec![bulk("1-0"), Value::Array(vec![bulk("up"), bulk("x")])]);
        let gone = Value::Array(vec![bulk("2-0"), Value::Nil]);
        let list = Value::Array(vec![there, gone]);
        let expected = vec![
            Entry { id: "1-0".to_owned(), field: Some(("up".to_owned(), b"x".to_vec())) },
            Entry { id: "2-0".to_owned(), field: None },
        ];
        assert_eq!(read(Value::Array(vec![Value::Array(vec![bulk("key"), list.clone()])])), expected);
        assert_eq!(read(Value::Map(vec![(bulk("key"), list.clone())])), expected);
        let reply = Value::Array(vec![bulk("0-0"), list, Value::Array(vec![bulk("3-0")])]);
        assert_eq!(claimed(reply), ("0-0".to_owned(), expected, vec!["3-0".to_owned()]));
        assert_eq!(read(Value::Nil), vec![]);
    }
}
