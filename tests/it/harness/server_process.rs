//! `airlock serve` in a process of its own, on free ports.

use std::{
    io::{BufRead, BufReader, Lines, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio},
    time::Duration,
};

use api::discovery::Announcement;
use tokio::time::{sleep, timeout};

use crate::harness::{MESSAGE_TIMEOUT, Owner, airlock, announcement, printed, run};

/// The services in a process of their own.
pub(crate) struct ServerProcess {
    child: Child,
    places: Vec<(String, String)>,
    first_account_link: Option<String>,
    /// Kept open, because the process fails to report its stop otherwise.
    output: Lines<BufReader<ChildStdout>>,
}

impl ServerProcess {
    /// Starts `airlock serve` and waits until it prints its addresses.
    pub(crate) fn start(dir: &Path) -> Self {
        Self::spawn(serve(dir).stderr(Stdio::null()))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines: Vec<String> =
            output.by_ref().map_while(Result::ok).take_while(|line| !line.starts_with("Next")).collect();
        let pair =
            |line: &String| line.trim().split_once("  ").map(|(name, place)| (name.to_owned(), place.to_owned()));
        let places = lines.iter().filter_map(pair).collect();
        let link = lines.iter().position(|line| line.contains("/register?first="));
        let ready = lines.iter().position(|line| line.contains("Airlock is ready"));
        assert!(link.is_none() || link < ready || ready.is_none(), "nobody waits for the rest: {lines:?}");
        let first_account_link = link.map(|link| lines[link].trim().to_owned());
        Self { child, places, first_account_link, output }
    }

    /// Returns false if it ended before it said where it listens.
    pub(crate) fn has_started(&self) -> bool {
        !self.places.is_empty()
    }

    /// The commands that it suggests.
    pub(crate) fn next_steps(&mut self) -> String {
        let lines = self.output.by_ref().map_while(Result::ok);
        lines.take_while(|line| !line.contains("Press Ctrl-C")).collect::<Vec<_>>().join("\n")
    }

    /// The address that creates the first account, if it printed one.
    pub(crate) fn first_account_link(&self) -> Option<&str> {
        self.first_account_link.as_deref()
    }

    pub(crate) fn place(&self, name: &str) -> &str {
        let place = self.places.iter().find(|(known, _)| known == name);
        place.map(|(_, place)| place.split(' ').next().unwrap()).expect("it says where that is")
    }

    /// The last URL or address of a service: that of its plain HTTP listener.
    pub(crate) fn http(&self, name: &str) -> &str {
        let place = self.places.iter().find(|(known, _)| known == name);
        place.and_then(|(_, place)| place.rsplit(' ').next()).expect("it says where that is")
    }

    pub(crate) fn command(&self, dir: &Path, arguments: &[&str], input: &str) -> Output {
        let mut command = airlock(dir);
        command.args(["--auth-server", self.place("account"), "--discovery-address", self.place("discovery")]);
        run(command.args(arguments), input)
    }

    pub(crate) fn type_command(&self, dir: &Path, arguments: &[&str], input: &str) -> String {
        printed(&self.command(dir, arguments, input))
    }

    pub(crate) fn stop(mut self) {
        self.signal("-TERM");
        assert!(self.wait().success());
    }

    /// Ends it at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.wait();
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Suspends it: it neither answers nor closes its connections.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Returns the number of files and sockets that it has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// Registers a user with an application.
    pub(crate) async fn owner(&self, dir: &Path, name: &str) -> Owner {
        Owner::register(name, self.place("account"), &self.announcement(dir).await).await
    }

    /// Waits for the handler's announcement. Until then, discovery may return that of an earlier process.
    pub(crate) async fn announcement(&self, dir: &Path) -> Announcement {
        let place = &self.places.iter().find(|(known, _)| known == "handler").unwrap().1;
        let is_own = |handler: &Announcement| {
            let port = handler.api_address.rsplit(':').next().unwrap();
            place.split([' ', ':']).any(|part| part == port)
        };
        let announced = async {
            loop {
                let handler = announcement(dir, self.place("discovery")).await;
                if is_own(&handler) {
                    return handler;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(MESSAGE_TIMEOUT, announced).await.expect("its handler announces itself")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // A process that has already ended cannot be killed.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// `airlock serve` on free ports.
pub(crate) fn serve(dir: &Path) -> Command {
    let mut command = airlock(dir);
    command.arg("serve");
    for name in ["ACCOUNT", "DISCOVERY", "DISCOVERY_HTTP", "HANDLER", "HANDLER_HTTP"] {
        command.env(format!("AIRLOCK_LISTEN__{name}"), "127.0.0.1:0");
    }
    command.env("AIRLOCK_BROKER__LISTEN", "127.0.0.1:0").env("AIRLOCK_TELEMETRY__LISTEN", "127.0.0.1:0");
    command
}

/// The same command, which cannot make a file longer than this.
pub(crate) fn limited(command: &Command, bytes_max: u64) -> Command {
    let mut limited = Command::new("sh");
    // Without the trap, the signal would end the process before it sees the error.
    limited.args(["-c", "trap '' XFSZ; ulimit -f $0; exec \"$@\"", &(bytes_max / 512).to_string()]);
    limited.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
}

/// The response to a GET request, with its head.
pub(crate) fn get(url: &str) -> String {
    let (address, path) = url.trim_start_matches("http://").split_once('/').unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    connection
        .write_all(format!("GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes())
        .unwrap();
    let mut response = String::new();
    connection.read_to_string(&mut response).unwrap();
    response
}
