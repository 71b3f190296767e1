//! The Debian package: built from the program of these tests, and looked into.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

use crate::harness::remove_settings;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn done(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{out}\n{err}");
    out.into_owned()
}

/// The package, what it unpacks to, and the modes and owners of its files; none where there is no `dpkg-deb`.
struct Package {
    file: PathBuf,
    root: TempDir,
    modes: BTreeMap<String, String>,
}

impl Package {
    /// Builds it from the program in `AIRLOCK_PACKAGE_BINARY`, such as a release build, or else from that of the tests.
    fn build() -> Option<Self> {
        if Command::new("dpkg-deb").arg("--version").output().is_err() {
            testing::skip("dpkg-deb is missing", "build packages on Debian or Ubuntu");
            return None;
        }
        let binary = std::env::var_os("AIRLOCK_PACKAGE_BINARY");
        let binary = binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_airlock").into());
        let root = tempfile::tempdir().unwrap();
        let dist = root.path().join("dist");
        let build = Path::new(ROOT).join("packaging/build");
        done(Command::new(build).args(["--deb", "--binary"]).arg(binary).arg(&dist).env("DEB_COMPRESSION", "none"));
        let file = fs::read_dir(dist).unwrap().next().unwrap().unwrap().path();
        done(Command::new("dpkg-deb").arg("--extract").arg(&file).arg(root.path().join("files")));
        let listed = done(Command::new("dpkg-deb").arg("--contents").arg(&file));
        let line = |line: &str| {
            let words: Vec<_> = line.split_whitespace().collect();
            (words[5].trim_start_matches('.').to_owned(), format!("{} {}", words[0], words[1]))
        };
        Some(Self { file, root, modes: listed.lines().map(line).collect() })
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join("files").join(path.trim_start_matches('/'))
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn field(&self, name: &str) -> String {
        done(Command::new("dpkg-deb").arg("--field").arg(&self.file).arg(name)).trim().to_owned()
    }
}

// Conformance: The Debian package and the image's root file system
#[test]
fn the_debian_package_is_complete_and_works() {
    let Some(package) = Package::build() else { return };
    is_complete(&package);
    works(&package);
}

fn is_complete(package: &Package) {
    for (path, mode) in [
        ("/usr/bin/airlock", "-rwxr-xr-x root/root"),
        ("/lib/systemd/system/airlock.service", "-rw-r--r-- root/root"),
        ("/usr/lib/sysusers.d/airlock.conf", "-rw-r--r-- root/root"),
        ("/etc/airlock/airlock.toml", "-rw-r----- root/root"),
        ("/usr/share/airlock/airlock.json", "-rw-r--r-- root/root"),
        ("/usr/share/airlock/airlock-rules.yml", "-rw-r--r-- root/root"),
        ("/usr/share/doc/airlock/copyright", "-rw-r--r-- root/root"),
        ("/usr/share/doc/airlock/operating.md", "-rw-r--r-- root/root"),
        ("/usr/share/man/man1/airlock.1.gz", "-rw-r--r-- root/root"),
        ("/usr/share/man/man1/airlock-devices-register.1.gz", "-rw-r--r-- root/root"),
        ("/usr/share/bash-completion/completions/airlock", "-rw-r--r-- root/root"),
        ("/usr/share/zsh/vendor-completions/_airlock", "-rw-r--r-- root/root"),
        ("/usr/share/fish/vendor_completions.d/airlock.fish", "-rw-r--r-- root/root"),
    ] {
        assert_eq!(package.modes.get(path).map(String::as_str), Some(mode), "{path}: {:#?}", package.modes);
    }
    assert_eq!(
        (package.field("Package"), package.field("Version")),
        ("airlock".into(), env!("CARGO_PKG_VERSION").into())
    );
    assert!(package.field("Depends").contains("libc6 (>= "), "{}", package.field("Depends"));
    let size: u64 = package.field("Installed-Size").parse().unwrap();
    assert!(size * 1024 >= fs::metadata(package.path("/usr/bin/airlock")).unwrap().len(), "{size}");
    let conffiles = done(Command::new("dpkg-deb").args(["--info"]).arg(&package.file).arg("conffiles"));
    assert_eq!(conffiles, "/etc/airlock/airlock.toml\n");
    let copyright = package.text("/usr/share/doc/airlock/copyright");
    assert!(copyright.contains("@lezer/javascript") && copyright.contains("Marijn Haverbeke"), "{copyright}");
    for script in ["postinst", "prerm", "postrm"] {
        let text = done(Command::new("dpkg-deb").arg("--info").arg(&package.file).arg(script));
        let file = package.root.path().join(script);
        fs::write(&file, text).unwrap();
        done(Command::new("sh").arg("-n").arg(file));
    }
}

fn works(package: &Package) {
    let airlock = || {
        let mut command = Command::new(package.path("/usr/bin/airlock"));
        remove_settings(command.env("HOME", package.root.path()));
        command
    };
    assert!(done(airlock().arg("--version")).starts_with("airlock "));
    let settings = package.path("/etc/airlock/airlock.toml");
    let shown = done(airlock().arg("--config").arg(&settings).args(["config", "print"]));
    assert!(shown.contains("data_dir = \"/var/lib/airlock\""), "{shown}");
    let page = done(Command::new("gzip").arg("-dc").arg(package.path("/usr/share/man/man1/airlock.1.gz")));
    assert!(page.contains(".TH airlock 1"), "{page}");
    // The first line is what makes zsh load it.
    assert!(package.text("/usr/share/zsh/vendor-completions/_airlock").starts_with("#compdef airlock"));
    done(Command::new("bash").arg("-n").arg(package.path("/usr/share/bash-completion/completions/airlock")));

    let unit = package.text("/lib/systemd/system/airlock.service");
    assert!(unit.contains("ExecStart=/usr/bin/airlock serve --config /etc/airlock/airlock.toml"), "{unit}");
    assert!(package.text("/usr/lib/sysusers.d/airlock.conf").starts_with("u airlock "));
    if Command::new("systemd-analyze").arg("--version").output().is_ok() {
        // The program is not where the unit expects it.
        let here = unit.replace("/usr/bin/airlock", package.path("/usr/bin/airlock").to_str().unwrap());
        let file = package.root.path().join("airlock.service");
        fs::write(&file, here).unwrap();
        let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&file).output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr);
        let ours: Vec<_> = complaints.lines().filter(|line| line.contains("airlock")).collect();
        assert!(ours.is_empty(), "{ours:#?}");
    }
}

// Conformance: The Debian package and the image's root file system
#[test]
fn the_root_of_the_image_has_what_the_program_needs() {
    let root = tempfile::tempdir().unwrap();
    let (image, binary) = (root.path().join("image"), env!("CARGO_BIN_EXE_airlock"));
    // As the Dockerfile names it, from where it was built.
    let (dir, name) = (Path::new(binary).parent().unwrap(), Path::new(binary).file_name().unwrap());
    done(Command::new(Path::new(ROOT).join("packaging/root")).current_dir(dir).arg(name).arg(&image));
    for path in ["usr/bin/airlock", "etc/ssl/certs/ca-certificates.crt", "etc/passwd", "var/lib/airlock", "tmp"] {
        assert!(image.join(path).exists(), "{path}");
    }
    assert!(fs::read_to_string(image.join("etc/passwd")).unwrap().contains(":65532:65532:"));
    let copyright = fs::read_to_string(image.join("usr/share/doc/airlock/copyright")).unwrap();
    assert!(copyright.contains("Marijn Haverbeke"), "{copyright}");
    assert!(!image.join("bin/sh").exists() && !image.join("usr/bin/sh").exists());
    let libraries = done(Command::new("ldd").arg(binary));
    let paths = libraries.split_whitespace().filter(|word| word.starts_with('/'));
    assert!(paths.clone().count() > 2, "{libraries}");
    for path in paths {
        assert!(image.join(path.trim_start_matches('/')).exists(), "{path}");
    }
}
