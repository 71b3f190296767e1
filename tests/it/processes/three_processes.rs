//! The three processes of docs/operating.md, with exactly the settings and the files that the page names.

use std::{fs, path::Path, process::Command, time::Duration};

use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::harness::{
    MESSAGE_TIMEOUT, Owner, announcement, printed, run,
    server_process::{ServerProcess, serve},
};

/// The directories of the page, below one that is the test's own.
struct Machine {
    root: tempfile::TempDir,
    page: String,
}

impl Machine {
    fn new() -> Self {
        let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operating.md")).unwrap();
        let section =
            page.split("## Single-process and separate services").nth(1).unwrap().split("\n## ").next().unwrap();
        let root = tempfile::tempdir().unwrap();
        let below = |path: &str| format!("{}{path}", root.path().display());
        let page = ["/etc/airlock", "/var/lib"].iter().fold(section.to_owned(), |page, path| {
            fs::create_dir_all(below(path)).unwrap();
            page.replace(path, &below(path))
        });
        let machine = Self { root, page };
        for settings in machine.blocks("toml") {
            let path = settings.lines().next().unwrap().trim_start_matches("# ");
            fs::write(path, &settings).unwrap();
        }
        machine
    }

    /// The page's blocks of code in a language.
    fn blocks(&self, language: &str) -> Vec<String> {
        let begin = format!("```{language}\n");
        let after = self.page.split(&begin).skip(1);
        after.map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
    }

    /// Starts a service as the page says, at free ports, which the others are told.
    fn start(&self, service: &str, addresses: &[(&str, &str)]) -> ServerProcess {
        let etc = self.root.path().join("etc/airlock");
        let line = format!("airlock --config {} serve {service}`", etc.join(format!("{service}.toml")).display());
        assert!(self.page.replace('\n', " ").contains(&line), "the page has no {line}");
        let data = self.data(service);
        fs::create_dir_all(&data).unwrap();
        let mut command = serve(&data);
        command.arg("--config").arg(etc.join(format!("{service}.toml"))).arg(service);
        ServerProcess::spawn(command.envs(addresses.iter().copied()).stderr(std::process::Stdio::null()))
    }

    fn data(&self, service: &str) -> std::path::PathBuf {
        self.root.path().join(format!("var/lib/airlock-{service}"))
    }

    /// Copies the files, for the user of the test instead of the handler's.
    fn copy_files(&self) {
        for line in self.blocks("sh").concat().lines().filter(|line| !line.contains("useradd")) {
            let line = line.replace("sudo install ", "install ").replace("-o handler ", "");
            assert!(["install -d", "install -m 4"].iter().any(|start| line.starts_with(start)), "{line}");
            printed(&run(Command::new("sh").args(["-c", &line]), ""));
        }
    }
}

/// Returns the status and body of `/readyz`.
async fn readiness(process: &ServerProcess) -> (u16, Value) {
    let url = process.place("metrics").replace("/metrics", "/readyz");
    let response = reqwest::get(url).await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

async fn is_ready(process: &ServerProcess) {
    let ready = async {
        while readiness(process).await.0 != 200 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(MESSAGE_TIMEOUT, ready).await.expect("it becomes ready");
}

#[tokio::test(flavor = "multi_thread")]
async fn three_processes_work_as_the_page_says() {
    server::system::install_crypto();
    let machine = Machine::new();
    let account = machine.start("account", &[]);
    let auth_server = ("AIRLOCK_CLIENT__AUTH_SERVER", account.place("account"));
    let discovery = machine.start("discovery", &[auth_server]);
    machine.copy_files();
    let addresses = [auth_server, ("AIRLOCK_CLIENT__DISCOVERY_ADDRESS", discovery.place("discovery"))];
    let handler = machine.start("handler", &addresses);
    for process in [&account, &discovery, &handler] {
        is_ready(process).await;
    }
    let announced = announcement(&machine.data("discovery"), discovery.place("discovery")).await;
    let owner = Owner::register("tenant", account.place("account"), &announced).await;
    owner.set_functions(["function Decoder(bytes) { return { n: bytes[0] }; }", "", ""]).await.unwrap();
    owner.add_device("dev-1").await;
    owner.simulate("dev-1", &[1], 1).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_cannot_announce_itself_is_not_ready() {
    let machine = Machine::new();
    let account = machine.start("account", &[]);
    let auth_server = ("AIRLOCK_CLIENT__AUTH_SERVER", account.place("account"));
    let discovery = machine.start("discovery", &[auth_server]);
    machine.copy_files();
    // The certificate of somebody else.
    let own = machine.data("account").join("ca.cert");
    let given = machine.root.path().join("etc/airlock/discovery.cert");
    swap(&own, &given);
    let addresses = [auth_server, ("AIRLOCK_CLIENT__DISCOVERY_ADDRESS", discovery.place("discovery"))];
    let (status, report) = readiness(&machine.start("handler", &addresses)).await;
    assert_eq!(status, 503, "{report}");
    let reason = report["checks"]["announcement"].as_str().unwrap();
    assert!(reason.contains("nobody who is trusted here has issued its certificate"), "{report}");
}

fn swap(from: &Path, to: &Path) {
    fs::remove_file(to).unwrap();
    fs::copy(from, to).unwrap();
}
