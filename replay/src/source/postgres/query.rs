//! The query for the uplinks that are wanted.

use tokio_postgres::types::ToSql;

use super::Table;
use crate::Filter;

/// A value of a condition.
pub(super) enum Value {
    Micros(i64),
    Text(String),
}

impl Value {
    fn borrowed(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Micros(micros) => micros,
            Self::Text(text) => text,
        }
    }
}

/// The query, and its values. Its columns are those that `uplink` reads, in this order.
pub(super) fn select(table: &Table, filter: &Filter) -> (String, Vec<Value>) {
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    let mut add = |condition: &str, value: Value| {
        values.push(value);
        conditions.push(condition.replace('?', &format!("${}", values.len())));
    };
    let moment = "timestamptz 'epoch' + ?::int8 * interval '1 microsecond'";
    for (operator, time) in [(">=", filter.since), ("<", filter.until)] {
        if let Some(time) = time {
            add(&format!("\"time\" {operator} {moment}"), Value::Micros(time.as_nanos() / 1000));
        }
    }
    if let Some(device) = &filter.device {
        add(
            "(lower(dev_eui::text) = lower(?::text) OR lower(device_name) = lower(?::text))",
            Value::Text(device.clone()),
        );
    }
    if let Some(application) = &filter.application {
        let condition = "(application_id::text = lower(?::text) OR lower(application_name) = lower(?::text))";
        add(condition, Value::Text(application.clone()));
    }
    let conditions = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
    let sql = format!(
        "SELECT deduplication_id::text, application_id::text, application_name::text, dev_eui::text, device_name::text, \
         data, f_port::int4, (extract(epoch FROM \"time\") * 1000000)::int8, object::text, \
         device_profile_id::text, device_profile_name::text FROM {}{conditions}",
        table.quoted()
    );
    (sql, values)
}

/// The values as the library takes them.
pub(super) fn borrowed(values: &[Value]) -> Vec<&(dyn ToSql + Sync)> {
    values.iter().map(Value::borrowed).collect()
}
