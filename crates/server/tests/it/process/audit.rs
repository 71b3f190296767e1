//! The audit log: bounded, and refusing changes while its file cannot be written.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::Duration,
};

use serde_json::Value;
use server::{
    audit::{AuditLog, Change},
    rate_limit::RateLimit,
    telemetry::{Health, TelemetrySettings},
};
use testing::{ManualClock, SmallDisk};
use tracing::{
    Dispatch,
    subscriber::{DefaultGuard, NoSubscriber},
};
use tracing_subscriber::layer::SubscriberExt;
use types::{Kind, Kinded};

const UNLIMITED: RateLimit = RateLimit::new(u32::MAX, 3600);

/// Keeps `tracing` from asking only the thread that comes first whether a line is logged, as it does while there is one
/// subscriber.
static OTHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// An audit log with a file, whose events reach it on this thread.
struct Audited {
    log: AuditLog,
    clock: Arc<ManualClock>,
    path: PathBuf,
    _subscriber: DefaultGuard,
}

impl Audited {
    fn at(path: &Path) -> Self {
        Self::with(path, |_| ())
    }

    fn with(path: &Path, change: impl FnOnce(&mut TelemetrySettings)) -> Self {
        LazyLock::force(&OTHER);
        let mut settings = TelemetrySettings { audit_file: Some(path.to_owned()), ..TelemetrySettings::default() };
        change(&mut settings);
        let clock = ManualClock::new();
        let log = AuditLog::open(&settings, clock.clone()).unwrap();
        let subscriber = tracing_subscriber::registry().with(log.layer());
        let subscriber = tracing::subscriber::set_default(subscriber);
        Self { log, clock, path: path.to_owned(), _subscriber: subscriber }
    }

    fn lines(&self) -> Vec<Value> {
        lines(&self.path)
    }

    async fn readiness(&self) -> Value {
        let health = Health::default();
        self.log.report_to(&health);
        serde_json::to_value(health.report().await).unwrap()
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn the_file_gets_one_line_per_security_event_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    for start in 1..=2 {
        let audited = Audited::at(&path);
        tracing::info!("not an event");
        audited.log.note("login", &"alice\n{\"forged\": true}", &"site");
        let lines = audited.lines();
        assert_eq!(lines.len(), start, "{lines:?}");
        let line = lines.last().unwrap();
        assert_eq!((&line["event"], &line["actor"]), (&"login".into(), &"alice\n{\"forged\": true}".into()));
        assert_eq!((&line["object"], &line["target"]), (&"site".into(), &"audit".into()));
    }
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn no_value_breaks_a_line_for_any_reader() {
    let dir = tempfile::tempdir().unwrap();
    let audited = Audited::at(&dir.path().join("audit.log"));
    let actor = "a\u{2028}b\u{2029}c\u{85}d\u{b}e\u{c}f\rg\u{7f}h\u{9b}i\u{202e}j";
    audited.log.note("login", &actor, &"Zoë \u{2067}");
    let text = fs::read_to_string(&audited.path).unwrap();
    let breaks = |text: &str| {
        text.chars()
            .filter(|&character| character.is_control() || "\u{2028}\u{2029}\u{202e}\u{2067}".contains(character))
            .count()
    };
    assert_eq!((breaks(&text), text.matches("Zoë").count()), (1, 1), "{text:?}");
    assert_eq!((&audited.lines()[0]["actor"], &audited.lines()[0]["object"]), (&actor.into(), &"Zoë \u{2067}".into()));
}

#[test]
fn the_file_has_a_bound_and_keeps_the_newest_events() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let audited = Audited::with(&path, |settings| {
        (settings.audit_file_bytes_max, settings.audit_files_max) = (100_000, 3);
        settings.audit_changes = UNLIMITED;
    });
    for number in 0..5000 {
        audited.log.change("access key created", &"alice", &number).unwrap().done();
    }
    let mut names: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["audit.log", "audit.log.1", "audit.log.2"]);
    let files = ["audit.log.2", "audit.log.1", "audit.log"].map(|name| dir.path().join(name));
    for file in &files {
        let metadata = fs::metadata(file).unwrap();
        assert!(metadata.len() <= 100_000, "{} bytes in {}", metadata.len(), file.display());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    let kept: Vec<u64> = files.iter().flat_map(|file| lines(file)).map(|line| number(&line)).collect();
    assert_eq!(kept, (5000 - kept.len() as u64..5000).collect::<Vec<_>>(), "the newest, without a gap");
}

fn number(line: &Value) -> u64 {
    line["object"].as_str().unwrap().parse().unwrap()
}

#[test]
fn two_processes_can_write_and_rotate_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("audit.log");
    let small = |settings: &mut TelemetrySettings| {
        (settings.audit_file_bytes_max, settings.audit_files_max) = (100_000, 100);
        settings.audit_changes = UNLIMITED;
    };
    let one = Audited::with(&path, small);
    let both = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let other = Audited::with(&path, small);
            (0..1000).for_each(|number| other.log.change("other", &"bob", &number).unwrap().done());
        });
        (0..1000).for_each(|number| one.log.change("one", &"alice", &number).unwrap().done());
        other.join()
    });
    both.unwrap();
    let all: Vec<Value> = fs::read_dir(&dir).unwrap().flat_map(|entry| lines(&entry.unwrap().path())).collect();
    for event in ["one", "other"] {
        let mut numbers: Vec<_> = all.iter().filter(|line| line["event"] == event).map(number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..1000).collect::<Vec<_>>(), "{event}");
    }
}

#[test]
fn a_file_that_was_moved_away_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let audited = Audited::at(&dir.path().join("audit.log"));
    audited.log.note("login", &"alice", &1);
    fs::rename(&audited.path, dir.path().join("moved")).unwrap();
    audited.log.note("login", &"alice", &2);
    assert_eq!((lines(&dir.path().join("moved")).len(), audited.lines().len()), (1, 1));
}

#[test]
fn a_flood_of_one_source_becomes_some_lines_and_a_count() {
    let dir = tempfile::tempdir().unwrap();
    let audited = Audited::with(&dir.path().join("audit.log"), |settings| settings.audit_events_per_minute = 10);
    let (flood, other) = ("203.0.113.7".parse().unwrap(), "2001:db8::1".parse().unwrap());
    for _ in 0..10_000 {
        audited.log.note_from(flood, "request refused", &"401 GET /api/v2/users/me");
    }
    audited.log.note_from(other, "request refused", &"401 GET /api/v2/users/me");
    audited.log.change("access key created", &flood, &"a change is always written").unwrap().done();
    assert_eq!(audited.lines().len(), 12);

    audited.clock.advance(Duration::from_secs(60));
    audited.log.finish();
    let lines = audited.lines();
    assert_eq!(lines.len(), 13, "the count is one line");
    let count = &lines[12];
    assert_eq!((&count["event"], &count["actor"]), (&"events left out".into(), &"203.0.113.7".into()));
    assert_eq!(count["object"], "9990 more of this source within a minute");
    audited.log.note_from(flood, "request refused", &"401 GET /api/v2/users/me");
    assert_eq!(audited.lines().len(), 14, "the next minute");
}

#[test]
fn refusals_hide_neither_logins_nor_refusals_of_others() {
    let dir = tempfile::tempdir().unwrap();
    let audited = Audited::at(&dir.path().join("audit.log"));
    for number in 0..3120 {
        let from = format!("203.0.113.{}", number % 20).parse().unwrap();
        audited.log.note_from(from, "request refused", &"401 GET /api/v2/users/me");
    }
    audited.log.note_from("198.51.100.1".parse().unwrap(), "login refused", &"alice");
    for user in 0..30 {
        audited.log.note("login", &user, &"site");
    }
    audited.clock.advance(Duration::from_secs(60));
    audited.log.finish();
    let lines = audited.lines();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    assert_eq!((of("login").len(), of("login refused").len()), (30, 1));
    let left_out = of("events left out");
    let counts = left_out.iter().map(|line| line["object"].as_str().unwrap().split(' ').next().unwrap());
    let left_out: usize = counts.map(|count| count.parse::<usize>().unwrap()).sum();
    assert_eq!(of("request refused").len() + left_out, 3120, "each is written or counted");
}

#[test]
fn the_addresses_of_an_ipv6_network_are_one_source() {
    let dir = tempfile::tempdir().unwrap();
    let audited = Audited::with(&dir.path().join("audit.log"), |settings| settings.audit_events_per_minute = 10);
    for host in 0..1000 {
        audited.log.note_from(format!("2001:db8::{host:x}").parse().unwrap(), "request refused", &"401");
    }
    assert_eq!(audited.lines().len(), 10);
}

#[tokio::test]
async fn a_device_that_is_full_refuses_changes_and_nothing_else() {
    let audited = Audited::at(Path::new("/dev/full"));
    audited.log.note("started", &"airlock", &"1");
    let error = audited.log.change("access key created", &"alice", &"my-app/key").unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.to_string().contains("No space left on device"), "{error}");
    audited.log.note("login", &"alice", &"site");
    let ready = audited.readiness().await;
    assert_eq!(ready["status"], "failing");
    assert!(ready["checks"]["audit"].as_str().unwrap().contains("No space left on device"), "{ready}");
}

#[tokio::test]
async fn a_full_disk_refuses_the_first_change_and_loses_no_event() {
    let Some(disk) = SmallDisk::mount() else { return };
    let audited = Audited::at(&disk.path().join("audit.log"));
    audited.log.change("access key created", &"alice", &"before").unwrap().done();
    disk.fill();
    let error = audited.log.change("access key created", &"alice", &"my-app/key").unwrap_err().to_string();
    assert!(error.contains("No space left on device"), "{error}");
    for number in 0..600 {
        audited.log.note("login", &number, &"while the disk is full");
    }
    assert_eq!(audited.readiness().await["status"], "failing");

    disk.empty();
    audited.log.change("access key created", &"alice", &"after").unwrap().done();
    assert_eq!(audited.readiness().await["status"], "ready");
    let lines = audited.lines();
    assert_eq!(lines.len(), 602, "what could not be written was kept");
    assert_eq!((&lines[0]["object"], &lines[601]["object"]), (&"before".into(), &"after".into()));
}

#[test]
fn a_change_that_has_begun_is_written_although_the_disk_fills_up() {
    let Some(disk) = SmallDisk::mount() else { return };
    let audited = Audited::at(&disk.path().join("audit.log"));
    let change = audited.log.change("access key created", &"alice", &"my-app/key").unwrap();
    disk.fill();
    change.done();
    assert_eq!(audited.lines().len(), 1);
}

#[test]
fn an_actor_cannot_push_the_changes_of_others_out_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let audited = Audited::with(&dir.path().join("audit.log"), |settings| {
        settings.audit_changes = RateLimit::new(10, 60);
    });
    let change = |actor: &str| audited.log.change("access key created", &actor, &"my-app/key").map(Change::done);
    for _ in 0..10 {
        change("user alice").unwrap();
    }
    let error = change("user alice").unwrap_err();
    assert_eq!((error.kind(), error.to_string()), (Kind::Exhausted, "too many changes: try again in 60 s".to_owned()));
    change("user bob").unwrap();
    audited.clock.advance(Duration::from_secs(60));
    change("user alice").unwrap();
    assert_eq!(audited.lines().len(), 12);
}

#[test]
fn a_change_that_rotates_the_file_is_written_although_the_disk_fills_up() {
    let Some(disk) = SmallDisk::mount() else { return };
    let audited = Audited::with(&disk.path().join("audit.log"), |settings| {
        (settings.audit_file_bytes_max, settings.audit_files_max) = (100_000, 3);
    });
    let older = disk.path().join("audit.log.1");
    for number in 0.. {
        let change = audited.log.change("access key created", &"alice", &number).unwrap();
        disk.fill();
        change.done();
        let text = fs::read_to_string(&audited.path).unwrap();
        assert!(text.contains(&format!("\"object\":\"{number}\"")), "change {number} is not in the file");
        disk.empty();
        if older.exists() {
            break;
        }
    }
}

#[test]
fn events_that_were_too_many_to_wait_for_the_file_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let audited = Audited::at(&dir.path().join("audit.log"));
    fs::remove_file(&audited.path).unwrap();
    symlink("/dev/full", &audited.path).unwrap();
    (0..1500).for_each(|number| audited.log.note("login", &number, &"site"));
    audited.log.finish();
    fs::remove_file(&audited.path).unwrap();
    audited.log.finish();
    audited.log.finish();
    let lines = audited.lines();
    assert_eq!(lines.len(), 1001, "{:?}", lines.last());
    let count = &lines[1000];
    assert_eq!((&count["event"], &count["actor"]), (&"events left out".into(), &"audit file".into()));
    assert_eq!(count["object"], "500 while the file could not be written");
}

#[tokio::test]
async fn a_change_leaves_a_line_unless_it_was_refused() {
    let dir = tempfile::tempdir().unwrap();
    let audited = Audited::at(&dir.path().join("audit.log"));
    let change = |object: &'static str| audited.log.change("access key created", &"alice", &object).unwrap();
    let fails = async |kind| Err::<(), _>(Failure(kind));
    change("made").run(async { Ok::<_, Failure>(()) }).await.unwrap();
    change("refused").run(fails(Kind::Denied)).await.unwrap_err();
    change("lost answer").run(fails(Kind::Unavailable)).await.unwrap_err();
    drop(change("cancelled").run(fails(Kind::Denied)));
    change("renamed").run_on(async { Ok::<_, Failure>(7) }, |number| format!("key {number}")).await.unwrap();
    let lines: Vec<_> = audited.lines().iter().map(|line| (line["object"].clone(), line["outcome"].clone())).collect();
    let unknown = Value::from("unknown");
    let expected =
        [("made", Value::Null), ("lost answer", unknown.clone()), ("cancelled", unknown), ("key 7", Value::Null)];
    assert_eq!(lines, expected.map(|(object, outcome)| (Value::from(object), outcome)));
}

/// An error of a kind.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failure(Kind);

impl Kinded for Failure {
    fn kind(&self) -> Kind {
        self.0
    }
}

#[test]
fn a_file_that_cannot_be_opened_stops_the_start() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().join("missing/audit.log"), dir.path().to_owned()] {
        let settings = TelemetrySettings { audit_file: Some(path), ..TelemetrySettings::default() };
        let error = AuditLog::open(&settings, ManualClock::new()).unwrap_err().to_string();
        assert!(error.starts_with("cannot write `") && error.contains("check that the directory exists"), "{error}");
    }
}
