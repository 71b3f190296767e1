//! The applications that a network is known to have, and how many others are recorded: whoever may publish on its
//! broker can invent as many as he likes.

use std::{
    collections::{BTreeSet, HashSet},
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use futures::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use server::{
    private_file::write_private,
    rate_limit::{LocalRateLimiter, RateLimit},
};
use tokio::sync::Semaphore;
use types::{AppId, Clock};

use super::questions::{Question, Questions};
use crate::Error;

/// Tells if a network has a device in an application, by their names there; none if it does not answer now.
pub type HasDevice = Arc<dyn Fn(&str, &str) -> BoxFuture<'static, Option<bool>> + Send + Sync>;

/// Maximum number of applications, of those that are not known, of which anything is recorded in an hour. Each makes a
/// file.
const OTHERS_MAX: usize = 64;
const HOUR_MS: i64 = 3_600_000;
/// The rate of questions to the network: each is a call of its API, and whoever may publish causes them.
const QUESTIONS: RateLimit = RateLimit::new(20, 720);
/// Maximum number of known applications, and of bytes of the file that has one in each line.
const KNOWN_MAX: usize = 100_000;
const FILE_BYTES_MAX: u64 = 40 * KNOWN_MAX as u64;

/// The applications of a network.
pub(super) struct Applications {
    has_device: HasDevice,
    /// Has the known ones, one in each line.
    file: PathBuf,
    clock: Arc<dyn Clock>,
    state: Mutex<SeenApplications>,
    /// The network is asked about one of them at a time, and not too often.
    turn: Arc<Semaphore>,
    limiter: LocalRateLimiter<()>,
}

#[derive(Default)]
struct SeenApplications {
    known: HashSet<AppId>,
    /// Those that are recorded in this hour, although they are not known.
    others: HashSet<AppId>,
    questions: Questions,
    /// Hours since 1970.
    hour: i64,
}

impl Applications {
    /// Opens the file of the known ones. Without a file, `stored` are known.
    pub(super) fn open(
        file: PathBuf,
        has_device: HasDevice,
        clock: Arc<dyn Clock>,
        stored: impl FnOnce() -> BTreeSet<AppId>,
    ) -> Result<Self, Error> {
        let known = read(&file).map_err(|source| Error::file("read", file.clone(), source))?;
        let known = match known {
            Some(known) => known,
            None => {
                let known: HashSet<AppId> = stored().into_iter().take(KNOWN_MAX).collect();
                let lines: String = known.iter().map(line).collect();
                write_private(&file, lines.as_bytes()).map_err(|source| Error::file("write", file.clone(), source))?;
                known
            }
        };
        let state = Mutex::new(SeenApplications { known, ..SeenApplications::default() });
        let limiter = LocalRateLimiter::new("applications", QUESTIONS, clock.clone());
        Ok(Self { has_device, file, clock, state, turn: Arc::new(Semaphore::new(1)), limiter })
    }

    /// Returns true if a record of an application may be kept. One that has devices with codecs is known: `has_run` says
    /// that one ran. The network is asked, in the background, if it has others, which have these names there.
    pub(super) fn admits(self: &Arc<Self>, app_id: &AppId, names: (&str, &str), has_run: bool) -> bool {
        if self.is_known(app_id) {
            return true;
        }
        if has_run {
            self.add(app_id.clone());
            return true;
        }
        let hour = self.clock.now().as_millis() / HOUR_MS;
        let is_admitted = self.state().admits_other(app_id, names, hour);
        self.ask();
        is_admitted
    }

    /// The owner of an application, by which history shares its room: all that are not known have the same one, so that
    /// however many take no more than one that is.
    pub(super) fn owner(&self, app_id: &AppId) -> String {
        if self.is_known(app_id) { app_id.to_string() } else { String::new() }
    }

    fn is_known(&self, app_id: &AppId) -> bool {
        self.state().known.contains(app_id)
    }

    /// Asks about one of those that wait, unless an answer is awaited, or the last ones came too fast.
    fn ask(self: &Arc<Self>) {
        let Ok(permit) = Arc::clone(&self.turn).try_acquire_owned() else { return };
        let Some(question) = self.next_question() else { return };
        let (applications, answer) = (Arc::clone(self), (self.has_device)(&question.application, &question.device));
        tokio::spawn(async move {
            match answer.await {
                Some(true) => applications.add(question.app_id),
                Some(false) => applications.state().questions.refuse(&question),
                // Its next message asks again.
                None => {}
            }
            drop(permit);
        });
    }

    fn next_question(&self) -> Option<Question> {
        let mut state = self.state();
        let questions = &mut state.questions;
        if questions.is_empty() || self.limiter.take(&()).is_err() { None } else { questions.take_next() }
    }

    fn add(&self, app_id: AppId) {
        let (file, line) = (self.file.clone(), line(&app_id));
        let is_new = {
            let mut state = self.state();
            state.known.len() < KNOWN_MAX && state.known.insert(app_id)
        };
        if is_new {
            tokio::task::spawn_blocking(move || append(&file, &line));
        }
    }

    fn state(&self) -> MutexGuard<'_, SeenApplications> {
        self.state.lock()
    }
}

impl SeenApplications {
    /// Notes a message of an application that is not known.
    fn admits_other(&mut self, app_id: &AppId, names: (&str, &str), hour: i64) -> bool {
        if self.hour != hour {
            (self.hour, self.others) = (hour, HashSet::new());
            self.questions.forget_refused();
        }
        self.questions.add(app_id, names);
        self.others.contains(app_id) || (self.others.len() < OTHERS_MAX && self.others.insert(app_id.clone()))
    }
}

fn line(app_id: &AppId) -> String {
    format!("{app_id}\n")
}

/// The applications in a file; none if it does not exist.
fn read(file: &Path) -> io::Result<Option<HashSet<AppId>>> {
    let mut bytes = Vec::new();
    match File::open(file).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let text = String::from_utf8_lossy(&bytes);
    Ok(Some(text.lines().filter_map(|line| line.parse().ok()).take(KNOWN_MAX).collect()))
}

/// Without this line, the application is found again after the next start.
fn append(file: &Path, line: &str) {
    let written = File::options().append(true).open(file).and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        tracing::warn!(file = %file.display(), %error, "cannot write which applications are known");
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        future::ready,
        ops::Range,
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use futures::FutureExt;
    use testing::{ManualClock, soon};

    use super::*;

    fn open(file: &Path, clock: &Arc<ManualClock>, stored: impl FnOnce() -> BTreeSet<AppId>) -> Arc<Applications> {
        let has_device: HasDevice = Arc::new(|application: &str, _: &str| ready(Some(application == "asked")).boxed());
        Arc::new(Applications::open(file.to_owned(), has_device, clock.clone(), stored).unwrap())
    }

    fn admits(applications: &Arc<Applications>, name: &str, has_run: bool) -> bool {
        applications.admits(&name.parse().unwrap(), (name, "dev"), has_run)
    }

    #[tokio::test]
    async fn a_flood_of_invented_applications_keeps_out_others_for_an_hour_and_no_known_ones() {
        let (dir, clock) = (tempfile::tempdir().unwrap(), ManualClock::new());
        let file = dir.path().join("applications");
        let applications = open(&file, &clock, || BTreeSet::from(["stored".parse().unwrap()]));
        for number in 0..OTHERS_MAX + 10 {
            assert_eq!(admits(&applications, &format!("invented-{number}"), false), number < OTHERS_MAX, "{number}");
        }
        assert!(admits(&applications, "invented-0", false), "it is recorded already");
        assert!(!admits(&applications, "new", false));
        assert!(admits(&applications, "stored", false) && admits(&applications, "decoded", true));
        let asked = async {
            while !admits(&applications, "asked", false) {
                tokio::task::yield_now().await;
            }
        };
        soon("the answer of the network", asked).await;
        let owners =
            ["stored", "decoded", "asked", "invented-0", "new"].map(|id| applications.owner(&id.parse().unwrap()));
        assert_eq!(owners, ["stored", "decoded", "asked", "", ""]);
        clock.advance(Duration::from_secs(3600));
        assert!(admits(&applications, "new", false));

        let written = async {
            while fs::read_to_string(&file).unwrap().lines().count() < 3 {
                tokio::task::yield_now().await;
            }
        };
        soon("the known applications", written).await;
        let again = open(&file, &clock, || panic!("the file has them"));
        let owners = ["stored", "decoded", "asked", "invented-0"].map(|id| again.owner(&id.parse().unwrap()));
        assert_eq!(owners, ["stored", "decoded", "asked", ""]);
    }

    #[tokio::test]
    async fn the_network_is_asked_only_so_often_and_a_real_application_is_found_in_a_flood() {
        let (dir, clock, asked) = (tempfile::tempdir().unwrap(), ManualClock::new(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&asked);
        let has_device: HasDevice = Arc::new(move |application: &str, _: &str| {
            count.fetch_add(1, Ordering::SeqCst);
            ready(Some(application == "real")).boxed()
        });
        let file = dir.path().join("applications");
        let applications = Arc::new(Applications::open(file, has_device, clock.clone(), BTreeSet::new).unwrap());
        let flood = async |numbers: Range<usize>| {
            for number in numbers {
                admits(&applications, &format!("invented-{number}"), false);
                tokio::task::yield_now().await;
            }
        };
        flood(0..2000).await;
        assert_eq!(asked.load(Ordering::SeqCst), QUESTIONS.burst as usize);
        assert!(!admits(&applications, "real", false), "others were before it");
        let real: AppId = "real".parse().unwrap();
        let found = async {
            let mut number = 2000;
            while !applications.is_known(&real) {
                clock.advance(Duration::from_secs(1));
                admits(&applications, "real", false);
                flood(number..number + 100).await;
                number += 100;
            }
        };
        soon("the question about the real one", found).await;
    }

    #[test]
    fn no_more_is_read_of_a_file_than_known_applications_need() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("applications");
        let lines: String = (0..KNOWN_MAX + 10).map(|number| format!("my-app-{number}\n")).collect();
        fs::write(&file, lines).unwrap();
        assert_eq!(read(&file).unwrap().unwrap().len(), KNOWN_MAX);
        fs::write(&file, "my-app\nNo Id\n\u{fffd}\n").unwrap();
        assert_eq!(read(&file).unwrap().unwrap(), HashSet::from(["my-app".parse::<AppId>().unwrap()]));
        assert!(read(&dir.path().join("none")).unwrap().is_none());
    }
}
