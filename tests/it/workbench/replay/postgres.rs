//! A real PostgreSQL with the table of ChirpStack's integration.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpListener,
    path::PathBuf,
    process::{Command, Stdio},
    sync::mpsc::channel,
    thread,
};

use serde_json::json;
use testing::{Certificates, PATIENCE, Postgres, Watchdog};

use super::{command, counts, report, with_codec};
use crate::harness::{complaint, printed, run};

const TABLE: &str = "
create table event_up (
    deduplication_id uuid primary key, time timestamp with time zone not null, tenant_id uuid not null,
    tenant_name text not null, application_id uuid not null, application_name text not null,
    device_profile_id uuid not null, device_profile_name text not null, device_name text not null,
    dev_eui char(16) not null, tags jsonb not null, dev_addr char(8) not null, adr boolean not null,
    dr smallint not null, f_cnt bigint not null, f_port smallint not null, confirmed boolean not null,
    data bytea not null, object jsonb not null, rx_info jsonb not null, tx_info jsonb not null);";

/// Statements that fill the table; `rows` has a number, a device, a day of November, a payload and an object each.
fn insert(rows: &str) -> String {
    format!(
        "insert into event_up select lpad(n::text, 32, '0')::uuid, ('2026-11-' || day || ' 10:00:00.25+00')::timestamptz,
         lpad('1', 32, '0')::uuid, 'tenant', lpad('2', 32, '0')::uuid, 'Cellar', lpad('3', 32, '0')::uuid, 'profile',
         'Meter ' || device, lpad(device::text, 16, '0'), '{{}}', '01020304', true, 5, n, 2, false, data::bytea,
         object::jsonb, '[]', '{{}}' from ({rows}) as rows (n, device, day, data, object)"
    )
}

/// Stored objects: right, wrong, missing, wrong and hard to quote, of a payload that now fails, and wrong again.
const ROWS: &str = r#"values
    (1, 1, 20, '\x095c', '{"celsius": 23.96, "port": 2.0}'),
    (2, 1, 21, '\x095c', '{"celsius": 239.6, "port": 2}'),
    (3, 2, 22, '\x095c', 'null'),
    (4, 2, 23, '\x095c', '{"celsius": "it''s \\ \" warm", "port": 2}'),
    (5, 2, 24, '\x09', '{"celsius": 1}'),
    (6, 2, 25, '\x095c', '{"celsius": 1}')"#;

fn with_rows() -> Option<(Postgres, Certificates)> {
    let certificates = Certificates::create();
    let server = Postgres::start(&certificates)?;
    server.run("postgres", TABLE);
    server.run("postgres", &insert(ROWS));
    Some((server, certificates))
}

fn with_password(mut command: Command, server: &Postgres) -> Command {
    command.env("PGPASSWORD", server.password());
    command
}

// Conformance: ChirpStack's PostgreSQL is read and corrected by reviewed SQL
#[test]
fn rows_are_compared_and_options_choose_them() {
    let (Some((server, certificates)), dir) = (with_rows(), with_codec()) else { return };
    let from = server.url("postgres");
    let (found, code) = report(&mut with_password(command(dir.path(), &from, &[]), &server), "");
    assert_eq!((counts(&found), code), ([1, 3, 1, 1, 0], Some(1)), "{found:#}");
    let example = &found["fields"]["celsius"]["example"];
    assert_eq!((&example["place"], &example["time"]), (&json!("row 2"), &json!("2026-11-21T10:00:00.25Z")));
    for (arguments, wanted) in [
        (&["--device", "0000000000000001"][..], 2),
        (&["--device", "meter 2"], 4),
        (&["--application", "cellar", "--table", "public.event_up"], 6),
        (&["--application", "00000000-0000-0000-0000-000000000002"], 6),
        (&["--since", "2026-11-21T10:00:00.25Z", "--until", "2026-11-23T10:00:00.25Z"], 2),
    ] {
        let (found, _) = report(&mut with_password(command(dir.path(), &from, arguments), &server), "");
        assert_eq!(found["uplinks"], wanted, "{arguments:?}");
    }
    // With TLS, if the certificate is that of the authority.
    let (from, authority) = (format!("{from}?sslmode=require"), certificates.path("ca.pem"));
    let trusted = ["--ca-certificate", authority.to_str().unwrap()];
    let (found, _) = report(&mut with_password(command(dir.path(), &from, &trusted), &server), "");
    assert_eq!(found["uplinks"], 6);
    let output = run(&mut with_password(command(dir.path(), &from, &[]), &server), "");
    assert!(complaint(&output).contains("cannot connect"), "{output:?}");
}

// Conformance: ChirpStack's PostgreSQL is read and corrected by reviewed SQL
#[test]
fn statements_of_sql_correct_what_has_not_changed_since() {
    let (Some((server, _)), dir) = (with_rows(), with_codec()) else { return };
    let from = server.url("postgres");
    let replay = || {
        let (found, _) = report(&mut with_password(command(dir.path(), &from, &["--sql", "new.sql"]), &server), "");
        (found["updates"]["written"].as_u64().unwrap_or_default(), counts(&found))
    };
    assert_eq!(replay(), (4, [1, 3, 1, 1, 0]));
    let sql = fs::read_to_string(dir.path().join("new.sql")).unwrap();
    assert!(sql.contains("BEGIN;") && sql.ends_with("-- 4 rows\nCOMMIT;\n"), "{sql}");
    assert!(!sql.contains(server.password()), "{sql}");
    server.run("postgres", r#"update event_up set object = '{"by": "somebody"}' where f_cnt = 6"#);
    for _ in 0..2 {
        server.run_file("postgres", &dir.path().join("new.sql"));
        let objects =
            server.run("postgres", "select f_cnt, object->>'celsius', object->>'by' from event_up order by 1");
        assert_eq!(objects, "1|23.96|\n2|23.96|\n3|23.96|\n4|23.96|\n5|1|\n6||somebody");
    }
    assert_eq!(replay(), (1, [4, 1, 1, 0, 0]));
}

#[test]
fn an_object_that_postgresql_cannot_store_is_no_statement() {
    let (Some((server, _)), dir) = (with_rows(), with_codec()) else { return };
    for (text, rows) in [("\\\\u0000", 0), ("\\\\ud800", 0), ("\\\\\\\\u0041 ' \\\\n", 6)] {
        let text = text.replace("\\\\", "\\");
        let codec = format!("function decodeUplink() {{ return {{ data: {{ text: \"{text}\" }} }}; }}");
        fs::write(dir.path().join("codec.js"), codec).unwrap();
        let from = server.url("postgres");
        let (found, _) = report(&mut with_password(command(dir.path(), &from, &["--sql", "new.sql"]), &server), "");
        let updates = &found["updates"];
        assert_eq!((&updates["written"], &updates["not_storable"]), (&json!(rows), &json!(6 - rows)), "{text}");
        server.run_file("postgres", &dir.path().join("new.sql"));
    }
}

// Conformance: ChirpStack's PostgreSQL is read and corrected by reviewed SQL
#[test]
fn what_is_wrong_with_a_server_is_said_in_a_line_without_the_password() {
    let (Some((mut server, _)), dir) = (with_rows(), with_codec()) else { return };
    server.run("postgres", "create database empty");
    server.run("postgres", "create database other");
    server.run("other", "create table event_up (id int, data text)");
    server.run("postgres", "create role nobody login password 'correct horse'");
    let [good, empty, other] = ["postgres", "empty", "other"].map(|database| server.url(database));
    let nobody = good.replace("chirpstack@", "nobody@");
    let wrong = good.replace("chirpstack@", "chirpstack:hunter2@");
    for (from, code, reason) in [
        (wrong.as_str(), 4, "refuses the password"),
        (&empty, 3, "has no table `event_up`"),
        (&other, 2, "is not as ChirpStack 4 creates it"),
        (&nobody, 4, "may not read the table"),
        (&good.replace("/postgres?", "/"), 0, ""),
        (&server.url("missing"), 3, "the database `missing` at "),
        ("postgres://localhost", 2, "the URL has no database"),
        ("postgres://u:hunter2@localhost:port/x", 2, "the URL must be like"),
        ("postgres://u@localhost:1/x", 5, "cannot connect to"),
    ] {
        let output = run(&mut with_password(command(dir.path(), from, &[]), &server), "");
        let error = String::from_utf8(output.stderr.clone()).unwrap();
        if reason.is_empty() {
            continue;
        }
        assert!(error.contains(reason) && error.lines().count() == 1, "{from}: {error}");
        assert!(error.matches("os error").count() < 2, "{from}: {error}");
        assert_eq!(output.status.code(), Some(code), "{from}: {error}");
        assert!(!error.contains("hunter2") && !error.contains(server.password()), "{error}");
    }
    let output = run(command(dir.path(), &good, &[]).env_remove("PGPASSWORD"), "");
    assert!(complaint(&output).contains("wants a password"), "{output:?}");
    server.stop();
    let output = run(&mut with_password(command(dir.path(), &good, &[]), &server), "");
    assert!(complaint(&output).contains("cannot connect to") && output.status.code() == Some(5), "{output:?}");
}

/// A server that gives this answer to the first that is said to it, and its port.
fn answering(answer: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        assert!(connection.read(&mut [0; 1024]).unwrap() > 0);
        connection.write_all(&answer).unwrap();
    });
    port
}

#[test]
fn a_server_that_is_too_old_or_is_no_postgresql_is_named_in_a_line() {
    let dir = with_codec();
    let fields = b"SFATAL\0C0A000\0Munsupported frontend protocol 3.0: server supports 1.0 to 2.0\0\0";
    let old = [&b"E"[..], &(fields.len() as u32 + 4).to_be_bytes(), fields].concat();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for (port, seconds, reason) in [
        (answering(old), 60, "refuses the connection: unsupported frontend protocol 3.0"),
        (answering(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()), 60, "cannot connect to"),
        (silent.local_addr().unwrap().port(), 1, "it does not answer"),
    ] {
        let from = format!("postgres://u:p@127.0.0.1:{port}/x?connect_timeout={seconds}");
        let output = run(&mut command(dir.path(), &from, &[]), "");
        let error = complaint(&output);
        assert!(error.contains(reason) && error.trim_end().lines().count() == 1, "{error}");
        assert_eq!(output.status.code(), Some(5), "{error}");
    }
}

#[test]
fn the_password_may_be_in_a_file_and_is_not_in_a_report() {
    let (Some((server, _)), dir) = (with_rows(), with_codec()) else { return };
    let (from, password) = (server.url("postgres"), server.password());
    for text in [format!("{password}\n"), format!("other:*:*:*:no\nlocalhost:*:postgres:chirpstack:{password}\n")] {
        fs::write(dir.path().join("password"), text).unwrap();
        let mut command = command(dir.path(), &from, &["--password-file", "password"]);
        assert_eq!(report(command.env_remove("PGPASSWORD"), "").0["uplinks"], 6);
    }
    let with_password = from.replace("chirpstack@", "chirpstack:correct%20horse@");
    let (found, _) = report(&mut command(dir.path(), &with_password, &["--html", "r.html", "--sql", "new.sql"]), "");
    assert_eq!(found["source"], from);
    for file in ["r.html", "new.sql"] {
        assert!(!fs::read_to_string(dir.path().join(file)).unwrap().contains("horse"), "{file}");
    }
}

// Conformance: ChirpStack's PostgreSQL is read and corrected by reviewed SQL
#[test]
fn a_connection_that_is_lost_ends_the_replay_and_leaves_no_files() {
    let (Some((mut server, _)), dir) = (with_rows(), with_codec()) else { return };
    let many = r#"select 10 + n, 1, 20, '\x095c', '{"celsius": 1}' from generate_series(1, 20000) as n"#;
    server.run("postgres", &insert(many));
    assert!(Command::new("mkfifo").arg(dir.path().join("pipe")).status().unwrap().success());
    let arguments = ["--jobs", "1", "--output", "pipe", "--sql", "new.sql"];
    let mut command = with_password(command(dir.path(), &server.url("postgres"), &arguments), &server);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _watchdog = Watchdog::of(&child);
    let mut pipe = begin_reading(dir.path().join("pipe"));
    server.stop();
    pipe.read_to_end(&mut Vec::new()).unwrap();
    let output = child.wait_with_output().unwrap();
    let error = complaint(&output);
    assert!(error.contains("rows"), "{error}");
    assert!(!dir.path().join("new.sql").exists());
}

/// Reads the beginning of a pipe. Until the rest is read, only few batches are.
fn begin_reading(path: PathBuf) -> File {
    let (sender, begun) = channel();
    // Opening it waits for whoever writes.
    thread::spawn(move || {
        let mut pipe = File::open(path).unwrap();
        pipe.read_exact(&mut [0; 1000]).unwrap();
        sender.send(pipe).unwrap();
    });
    begun.recv_timeout(PATIENCE).expect("nothing was written into the pipe")
}

#[test]
fn nothing_is_changed_in_the_database() {
    let (Some((server, _)), dir) = (with_rows(), with_codec()) else { return };
    server.run("postgres", "create role reader login password 'correct horse'; grant select on event_up to reader");
    let from = server.url("postgres").replace("chirpstack@", "reader@");
    let before = server.run("postgres", "select md5(string_agg(event_up::text, '')) from event_up");
    let output = run(&mut with_password(command(dir.path(), &from, &["--until", "2026-11-24T00:00:00Z"]), &server), "");
    printed(&output);
    assert_eq!(server.run("postgres", "select md5(string_agg(event_up::text, '')) from event_up"), before);
}
