//! The measurements of a normalized payload: which ones The Things Stack knows, and which values they can have.
//!
//! The list is that of its Application Server and of its device repository, which is ahead of it.

use bridge::message::raw_object::RawObject;
use serde_json::value::{RawValue, to_raw_value};
use types::Timestamp;

/// Measurements as they are published.
#[derive(Debug, Default)]
pub(crate) struct Measurements {
    pub(crate) valid: Vec<Box<RawValue>>,
    /// The parts that were left out, each with the reason.
    pub(crate) warnings: Vec<String>,
}

/// Type and range of a field.
enum Field {
    Object,
    Time,
    Flag,
    FlagOrText,
    OneOf(&'static [&'static str]),
    Number {
        min: f64,
        max: f64,
    },
    /// An angle, which is less than 360 degrees.
    Angle,
}

/// Problem with a field.
enum Problem {
    /// There is no such field, or it holds something else.
    Foreign(String),
    /// Its value cannot be measured.
    OutOfRange(String),
}

impl Measurements {
    /// Those of the result of `normalizeUplink`, an object or an array of objects, without what is not valid.
    pub(crate) fn of_normalizer(normalized: &RawValue) -> Self {
        let array: Vec<&RawValue> = serde_json::from_str(normalized.get()).unwrap_or_else(|_| vec![normalized]);
        let mut measurements = Self::default();
        for (place, measurement) in array.into_iter().enumerate() {
            measurements.add(place, check(measurement));
        }
        measurements
    }

    /// Those of a formatter without a normalizer whose result has the form of a measurement; none in another form.
    pub(crate) fn of_decoder(decoded: &RawValue) -> Option<Self> {
        let (valid, problems) = check(decoded);
        if problems.iter().any(|problem| matches!(problem, Problem::Foreign(_))) {
            return None;
        }
        let mut measurements = Self::default();
        measurements.add(0, (valid, problems));
        Some(measurements)
    }

    fn add(&mut self, place: usize, (valid, problems): (Option<Box<RawValue>>, Vec<Problem>)) {
        self.valid.extend(valid);
        self.warnings.extend(problems.into_iter().map(|problem| {
            let (Problem::Foreign(text) | Problem::OutOfRange(text)) = problem;
            format!("measurement {}: {text}", place + 1)
        }));
    }
}

/// The valid fields of a measurement, if it has any, and the problems of the others.
fn check(measurement: &RawValue) -> (Option<Box<RawValue>>, Vec<Problem>) {
    let mut problems = Vec::new();
    let valid = match object(measurement, "", &mut problems) {
        Some(valid) => valid,
        None => {
            problems.push(Problem::Foreign("it is not an object".to_owned()));
            None
        }
    };
    (valid, problems)
}

/// The valid fields of an object, if it has any; none outside for something else. Each path starts with `prefix`.
fn object(text: &RawValue, prefix: &str, problems: &mut Vec<Problem>) -> Option<Option<Box<RawValue>>> {
    let mut members = RawObject::parse(text.get().as_bytes()).ok()?;
    members.replace_each(|name, value| {
        let path = format!("{prefix}{name}");
        match valid(&path, value, problems) {
            Ok(valid) => valid,
            Err(problem) => {
                problems.push(problem);
                None
            }
        }
    });
    Some(if members.is_empty() { None } else { to_raw_value(&members).ok() })
}

/// The valid part of a field, if there is one.
fn valid(path: &str, value: &RawValue, problems: &mut Vec<Problem>) -> Result<Option<Box<RawValue>>, Problem> {
    let field = field(path).ok_or_else(|| Problem::Foreign(format!("unknown field `{path}`")))?;
    let foreign = || Problem::Foreign(format!("invalid field type of `{path}`"));
    let out_of_range = |text: String| Problem::OutOfRange(format!("`{path}` should be {text}"));
    let text = value.get();
    match field {
        Field::Object => return object(value, &format!("{path}."), problems).ok_or_else(foreign),
        Field::Time => {
            serde_json::from_str::<Timestamp>(text).map_err(|_| foreign())?;
        }
        Field::Flag => {
            serde_json::from_str::<bool>(text).map_err(|_| foreign())?;
        }
        Field::FlagOrText if matches!(text, "true" | "false") || text.starts_with('"') => {}
        Field::FlagOrText => return Err(foreign()),
        Field::OneOf(allowed) => {
            let found: String = serde_json::from_str(text).map_err(|_| foreign())?;
            if !allowed.contains(&found.as_str()) {
                return Err(out_of_range(format!("`{}`", allowed.join("` or `"))));
            }
        }
        Field::Number { min, max } => {
            let number: f64 = serde_json::from_str(text).map_err(|_| foreign())?;
            if number < min {
                return Err(out_of_range(format!("equal or greater than `{min}`")));
            }
            if number > max {
                return Err(out_of_range(format!("equal or less than `{max}`")));
            }
        }
        Field::Angle => {
            let number: f64 = serde_json::from_str(text).map_err(|_| foreign())?;
            if number < 0.0 {
                return Err(out_of_range("equal or greater than `0`".to_owned()));
            }
            if number >= 360.0 {
                return Err(out_of_range("less than `360`".to_owned()));
            }
        }
    }
    Ok(Some(value.to_owned()))
}

/// The field of this name; none if there is no such measurement.
fn field(path: &str) -> Option<Field> {
    const ANY: Field = Field::Number { min: f64::NEG_INFINITY, max: f64::INFINITY };
    const POSITIVE: Field = Field::Number { min: 0.0, max: f64::INFINITY };
    const CELSIUS: Field = Field::Number { min: -273.15, max: f64::INFINITY };
    const PERCENT: Field = Field::Number { min: 0.0, max: 100.0 };
    const PARTS_PER_MILLION: Field = Field::Number { min: 0.0, max: 1_000_000.0 };
    Some(match path {
        "action" | "action.motion" | "air" | "metering" | "metering.water" | "position" | "soil" | "water"
        | "water.temperature" | "wind" => Field::Object,
        "time" => Field::Time,
        "action.motion.detected" => Field::Flag,
        "water.leak" => Field::FlagOrText,
        "action.contactState" => Field::OneOf(&["open", "closed"]),
        "air.location" => Field::OneOf(&["indoor", "outdoor"]),
        "action.motion.count" | "metering.water.total" | "position.latitude" | "position.longitude" => ANY,
        "air.lightIntensity" | "battery" | "soil.depth" | "wind.speed" => POSITIVE,
        "air.temperature"
        | "soil.temperature"
        | "water.temperature.avg"
        | "water.temperature.current"
        | "water.temperature.max"
        | "water.temperature.min" => CELSIUS,
        "air.relativeHumidity" | "soil.moisture" => PERCENT,
        "air.co2" | "soil.k" | "soil.n" | "soil.p" => PARTS_PER_MILLION,
        "air.pressure" => Field::Number { min: 900.0, max: 1100.0 },
        "soil.ec" => Field::Number { min: 0.0, max: 621.0 },
        "soil.pH" => Field::Number { min: 0.0, max: 14.0 },
        "wind.direction" => Field::Angle,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn texts(measurements: &[Box<RawValue>]) -> Vec<&str> {
        measurements.iter().map(|measurement| measurement.get()).collect()
    }

    #[test]
    fn what_is_known_stays_as_it_was() {
        for text in [
            r#"{"air":{"temperature":20.50,"location":"indoor","co2":1e6},"battery":3.6}"#,
            r#"{"time":"2026-11-22T16:45:56.5+01:00","soil":{"moisture":100,"pH":0,"n":1}}"#,
            r#"{"wind":{"direction":359.9},"water":{"leak":true,"temperature":{"min":-273.15}}}"#,
            r#"{"action":{"motion":{"detected":false,"count":-1},"contactState":"open"},"metering":{"water":{"total":7}}}"#,
        ] {
            let Measurements { valid, warnings } = Measurements::of_normalizer(&raw(text));
            assert_eq!((texts(&valid), warnings), (vec![text], Vec::new()));
        }
        let array = raw(r#"[{"air":{"temperature":1}},{"air":{"temperature":2}},{}]"#);
        let Measurements { valid, warnings } = Measurements::of_normalizer(&array);
        assert_eq!(texts(&valid), [r#"{"air":{"temperature":1}}"#, r#"{"air":{"temperature":2}}"#]);
        assert!(warnings.is_empty());
    }

    #[test]
    fn what_is_not_valid_is_left_out_with_a_warning() {
        for (text, expected) in [
            (r#"{"soil":{"moisture":120}}"#, "`soil.moisture` should be equal or less than `100`"),
            (r#"{"air":{"temperature":-300}}"#, "`air.temperature` should be equal or greater than `-273.15`"),
            (r#"{"wind":{"direction":360}}"#, "`wind.direction` should be less than `360`"),
            (r#"{"air":{"location":"cellar"}}"#, "`air.location` should be `indoor` or `outdoor`"),
            (r#"{"air":{"temperature":"20"}}"#, "invalid field type of `air.temperature`"),
            (r#"{"air":20}"#, "invalid field type of `air`"),
            (r#"{"time":"yesterday"}"#, "invalid field type of `time`"),
            (r#"{"water":{"leak":1}}"#, "invalid field type of `water.leak`"),
            (r#"{"air":{"smell":"good"}}"#, "unknown field `air.smell`"),
            (r#"{"temperature":20}"#, "unknown field `temperature`"),
            ("7", "it is not an object"),
        ] {
            let Measurements { valid, warnings } = Measurements::of_normalizer(&raw(text));
            assert_eq!((texts(&valid), warnings), (vec![], vec![format!("measurement 1: {expected}")]));
        }
        let second = raw(r#"[{"battery":3},{"air":{"co2":-1,"pressure":1000},"x":1}]"#);
        let Measurements { valid, warnings } = Measurements::of_normalizer(&second);
        assert_eq!(texts(&valid), [r#"{"battery":3}"#, r#"{"air":{"pressure":1000}}"#]);
        assert_eq!(
            warnings,
            ["measurement 2: `air.co2` should be equal or greater than `0`", "measurement 2: unknown field `x`"]
        );
    }

    #[test]
    fn a_decoded_payload_counts_if_it_has_no_other_fields() {
        let measurements = Measurements::of_decoder(&raw(r#"{"air":{"temperature":20,"co2":-1}}"#)).unwrap();
        assert_eq!(texts(&measurements.valid), [r#"{"air":{"temperature":20}}"#]);
        assert_eq!(measurements.warnings.len(), 1);
        for text in [r#"{"air":{"temperature":20},"x":1}"#, r#"{"air":{"temperature":"20"}}"#, "[]"] {
            assert!(Measurements::of_decoder(&raw(text)).is_none(), "{text}");
        }
        assert!(Measurements::of_decoder(&raw("{}")).unwrap().valid.is_empty());
    }
}
