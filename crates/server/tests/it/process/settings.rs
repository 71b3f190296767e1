//! Settings: precedence, errors, and the printed file.

use std::{collections::BTreeMap, fs};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use server::settings::{Layers, print};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    /// Where everything is kept.
    directory: String,
    /// Something that need not be set.
    nickname: Option<String>,
    /// The key that opens everything.
    #[schemars(extend("writeOnly" = true))]
    password: Option<String>,
    /// Whom to trust, and where they are.
    issuers: BTreeMap<String, String>,
    /// The part that listens.
    handler: Handler,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Handler {
    /// Where it listens. This sentence is here to be so long that the comment needs a second line, and so it goes on.
    http_listen: String,
    /// The time that it waits.
    timeout_ms: u64,
    /// Names that it answers to.
    names: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        let issuers = BTreeMap::from([("account".to_owned(), "http://localhost:8000".to_owned())]);
        let directory = "data".to_owned();
        Self { directory, nickname: None, password: None, issuers, handler: Handler::default() }
    }
}

impl Default for Handler {
    fn default() -> Self {
        Self { http_listen: "127.0.0.1:8084".to_owned(), timeout_ms: 1000, names: vec!["a".to_owned()] }
    }
}

fn variables(variables: &[(&str, &str)]) -> Vec<(String, String)> {
    variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn with_file(text: &str, then: impl FnOnce(Layers, &str)) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("airlock.toml");
    fs::write(&path, text).unwrap();
    then(Layers::new().file(&path), &path.display().to_string());
}

fn refusal(layers: &Layers) -> String {
    layers.load::<Settings>().unwrap_err().to_string()
}

#[test]
fn uses_defaults_without_layers() {
    assert_eq!(Layers::new().load::<Settings>().unwrap(), Settings::default());
}

#[test]
fn a_later_layer_wins_value_by_value() {
    with_file("directory = 'file'\n[handler]\ntimeout_ms = 1\nnames = ['file']\nhttp_listen = 'file'", |layers, _| {
        let layers = layers
            .environment(variables(&[
                ("AIRLOCK_HANDLER__HTTP_LISTEN", "environment"),
                ("AIRLOCK_HANDLER__TIMEOUT_MS", "2"),
                ("AIRLOCK_NICKNAME", ""),
                ("OTHER_DIRECTORY", "other"),
            ]))
            .flag("--timeout", "handler.timeout_ms", 3);
        let named = ["handler.timeout_ms", "handler.http_listen", "nickname", "directory"];
        assert_eq!(named.map(|key| layers.is_named(key)), [true, true, false, false]);
        let settings: Settings = layers.load().unwrap();
        let handler = Handler { http_listen: "environment".to_owned(), timeout_ms: 3, names: vec!["file".to_owned()] };
        assert_eq!(settings, Settings { directory: "file".to_owned(), handler, ..Settings::default() });
    });
}

#[test]
fn refuses_an_unknown_key_with_its_name_and_source() {
    with_file("directory = 'x'\n[handler]\ntimeout = 5", |layers, path| {
        let text = refusal(&layers);
        assert!(text.contains("`handler.timeout`") && text.contains(path) && text.contains("timeout_ms"), "{text}");
    });
    let text = refusal(&Layers::new().environment(variables(&[("AIRLOCK_HANDLER__TIMEOUT", "5")])));
    assert!(text.contains("`handler.timeout` from the variable `AIRLOCK_HANDLER__TIMEOUT` is unknown"), "{text}");
    let text = refusal(&Layers::new().environment(variables(&[("AIRLOCK_FOLDR", "x")])));
    let load = |name| Layers::new().environment(variables(&[(name, "x")])).load::<Settings>().unwrap_err().to_string();
    let turned = load("AIRLOCK_HANDLER__ISSUERS");
    assert!(turned.ends_with("did you mean `issuers.handler`?"), "{turned}");
    assert!(text.contains("`foldr` from the variable `AIRLOCK_FOLDR` is unknown"), "{text}");
    let text = refusal(&Layers::new().flag("--loud", "loud", true));
    assert!(text.contains("`loud` from the flag `--loud` is unknown"), "{text}");
}

#[test]
fn refuses_a_value_of_the_wrong_type_with_its_name_and_source() {
    with_file("[handler]\ntimeout_ms = 'soon'", |layers, path| {
        let text = refusal(&layers);
        assert!(text.contains("`handler.timeout_ms`") && text.contains(path), "{text}");
    });
    let text = refusal(&Layers::new().environment(variables(&[("AIRLOCK_HANDLER__TIMEOUT_MS", "soon")])));
    assert!(text.contains("variable `AIRLOCK_HANDLER__TIMEOUT_MS`"), "{text}");
    let text = refusal(&Layers::new().flag("--timeout", "handler.timeout_ms", -1));
    assert!(
        text.contains("`handler.timeout_ms` from the flag `--timeout` not valid: must be a whole number"),
        "{text}"
    );
    let text = refusal(&Layers::new().environment(variables(&[("AIRLOCK_PASSWORD", "31415926")])));
    assert!(text.contains("must be a string") && !text.contains("31415926"), "{text}");
}

#[test]
fn names_a_file_that_is_missing_or_not_toml() {
    let text = refusal(&Layers::new().file("/nowhere/airlock.toml".as_ref()));
    assert!(text.contains("/nowhere/airlock.toml"), "{text}");
    with_file("directory = ", |layers, path| {
        let text = refusal(&layers);
        assert!(text.contains(path), "{text}");
    });
}

#[test]
fn printed_settings_survive_a_round_trip() {
    let handler = Handler { http_listen: "[::1]:0".to_owned(), timeout_ms: 7, names: vec!["x \"y\"".to_owned()] };
    let changed = Settings { nickname: Some("n".to_owned()), handler, ..Settings::default() };
    for settings in [Settings::default(), changed] {
        with_file(&print(&settings).unwrap(), |layers, _| {
            assert_eq!(layers.load::<Settings>().unwrap(), settings);
        });
    }
}

#[test]
fn printed_settings_have_comments() {
    let handler = Handler { timeout_ms: 7, ..Handler::default() };
    let settings = Settings { password: Some("hush".to_owned()), handler, ..Settings::default() };
    let expected = r#"# Where everything is kept.
directory = "data"

# Something that need not be set.
# nickname =

# The key that opens everything.
# password = (set, not shown)

# Whom to trust, and where they are.
issuers = { account = "http://localhost:8000" }

# The part that listens.
[handler]
# Where it listens. This sentence is here to be so long that the comment needs a second line, and so
# it goes on.
http_listen = "127.0.0.1:8084"

# The time that it waits.
# Default: 1000
timeout_ms = 7

# Names that it answers to.
names = ["a"]

"#;
    assert_eq!(print(&settings).unwrap(), expected);
}

#[test]
fn a_list_that_stands_for_a_table_stays_beside_other_members() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("airlock.toml");
    fs::write(&path, "handler = ['b', 'c']").unwrap();
    let layers = Layers::new().file_with_list(&path, "handler", "names");
    let layers = layers.environment(variables(&[("AIRLOCK_HANDLER__TIMEOUT_MS", "7")]));
    let Handler { timeout_ms, names, .. } = layers.load::<Settings>().unwrap().handler;
    assert_eq!((timeout_ms, names), (7, vec!["b".to_owned(), "c".to_owned()]));
    fs::write(&path, "handler = [1]").unwrap();
    let error = refusal(&Layers::new().file_with_list(&path, "handler", "names"));
    assert!(error.starts_with("setting `handler.names") && error.contains(&path.display().to_string()), "{error}");
}
