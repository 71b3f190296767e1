//! The commands. The arguments of a command are beside its code, in `commands`.

#[cfg(test)]
mod transcripts;

use clap::{Parser, Subcommand};
use types::{AppEui, AppId};

use crate::{
    commands::{
        account::args::Account,
        applications::args::Applications,
        backup::{Backup, Restore},
        bridge::Bridge,
        demo::Demo,
        devices::args::Devices,
        downlink::Downlink,
        functions::args::Functions,
        gateways::args::Gateways,
        handler::args::Handler,
        history::args::History,
        load::Load,
        playground::Playground,
        replay::args::ReplayCommand,
        shell::{Completions, Man},
        subscribe::Subscribe,
        user::args::User,
        webhooks::args::Webhooks,
    },
    output::OutputOptions,
    serve::Serve,
    settings::GlobalOptions,
    values::completion,
    version,
};

/// Runs LoRaWAN payload functions, each message in a fresh WebAssembly sandbox, and publishes JSON over MQTT.
///
/// Run `airlock demo` first: it needs no setup and shows live uplinks.
#[derive(Debug, Parser)]
#[command(name = "airlock", version = version::LONG, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start all services in a temporary directory with a sample application, and show live uplinks
    #[command(
        after_help = "Examples:\n  airlock demo\n  airlock demo --count 20\n  airlock demo --decoder my.js --payload 0102ff --port 1"
    )]
    Demo(Demo),
    /// Start all services, or one of them
    #[command(after_help = "Examples:\n  airlock serve\n  airlock serve handler --config /etc/airlock.toml")]
    Serve(Serve),
    /// Decode the traffic of an existing network
    Bridge {
        #[command(subcommand)]
        command: Bridge,
    },
    /// Register, log in, log out, or show who is logged in
    User {
        #[command(flatten)]
        output: OutputOptions,
        #[command(subcommand)]
        command: Option<User>,
    },
    /// Manage applications and their payload functions
    #[command(visible_alias = "application")]
    Applications {
        #[command(flatten)]
        output: OutputOptions,
        #[command(subcommand)]
        command: Applications,
    },
    /// Manage the devices of an application
    #[command(visible_alias = "device")]
    Devices {
        #[command(flatten)]
        output: OutputOptions,
        /// Application [default: the selected one]
        #[arg(long, global = true, value_name = "ID", add = completion::applications())]
        app_id: Option<AppId>,
        /// Application EUI [default: the selected one, or the application's first]
        #[arg(long, global = true, value_name = "EUI")]
        app_eui: Option<AppEui>,
        #[command(subcommand)]
        command: Devices,
    },
    /// Manage the webhooks of an application
    #[command(visible_alias = "webhook")]
    Webhooks {
        #[command(flatten)]
        output: OutputOptions,
        /// Application [default: the selected one]
        #[arg(long, global = true, value_name = "ID", add = completion::applications())]
        app_id: Option<AppId>,
        #[command(subcommand)]
        command: Webhooks,
    },
    /// Search, correct and resend the stored messages of an application
    History {
        #[command(flatten)]
        output: OutputOptions,
        /// Application [default: the selected one]
        #[arg(long, global = true, value_name = "ID", add = completion::applications())]
        app_id: Option<AppId>,
        #[command(subcommand)]
        command: Box<History>,
    },
    /// Manage gateways
    #[command(visible_alias = "gateway")]
    Gateways {
        #[command(flatten)]
        output: OutputOptions,
        #[command(subcommand)]
        command: Gateways,
    },
    /// Send a downlink message to a device
    ///
    /// Returns once the message is in the queue of the device, when the event down/scheduled is published. It fails if the
    /// device does not exist or the encoder fails. The device gets the message after its next uplink: `airlock subscribe`
    /// shows when it was sent and acknowledged.
    Downlink(Downlink),
    /// Show an application's uplinks, events and errors as they arrive
    Subscribe(Subscribe),
    /// Check, run and benchmark payload functions locally, without a server
    #[command(visible_alias = "function")]
    Functions {
        #[command(subcommand)]
        command: Functions,
    },
    /// Open a page in the browser that runs payload functions as you type, in the same sandbox as the server
    ///
    /// The page needs no account and no network. It shows the result of each message, its logs, the line that failed, fuel
    /// and memory, and which bytes each field came from. A link carries everything. See docs/playground.md.
    Playground(Playground),
    /// Run stored uplinks of any network through a codec, and show what would change
    ///
    /// Reads what networks store or export, without a server: each uplink with its decoded object. The report says how many
    /// objects are equal, which fields change, what newly fails and what is newly decoded.
    ///
    /// The exit code is 0 if nothing newly fails, 1 if something does, and 2 if there are no uplinks or some cannot be
    /// read; the others are run nevertheless. It is 3 if the source does not exist, 4 if it refuses the login, and 5 if it
    /// cannot be reached. See docs/replay.md.
    #[command(
        after_help = "Examples:\n  airlock replay --from events.jsonl --codec decoder.js\n  airlock replay --from export.csv --codec decoder.js --device my-device --html report.html"
    )]
    Replay(Box<ReplayCommand>),
    /// Manage users, OAuth clients, components and signing keys directly in this server's store
    ///
    /// This works while the services run and while they are stopped.
    Account {
        #[command(flatten)]
        output: OutputOptions,
        #[command(subcommand)]
        command: Account,
    },
    /// Manage the handler's records directly in this server's store
    ///
    /// This works while the services run and while they are stopped.
    Handler {
        #[command(flatten)]
        output: OutputOptions,
        #[command(subcommand)]
        command: Handler,
    },
    /// Send many uplinks, and measure how long they take to reach their subscribers
    ///
    /// Uplinks are calls of the handler, of which `handler.calls` allows a user 5000 an hour by default: raise that for a
    /// longer test.
    Load(Load),
    /// Copy the server's embedded store into a file, also while the server runs
    ///
    /// The copy is of one moment. Run this as the server's user, with its `--data`.
    Backup(Backup),
    /// Replace the embedded store with a backup, while the server is stopped
    Restore(Restore),
    /// Show the configuration
    Config {
        #[command(flatten)]
        output: OutputOptions,
        #[command(subcommand)]
        command: Option<Config>,
    },
    /// Print a script with which a shell completes commands, options and ids
    ///
    /// For bash, add `source <(airlock completions bash)` to ~/.bashrc. The ids are those of the selected application and
    /// of whoever is logged in.
    #[command(after_help = "Example:\n  airlock completions bash > ~/.local/share/bash-completion/completions/airlock")]
    Completions(Completions),
    /// Write a manual page for each command
    #[command(after_help = "Example:\n  airlock man ~/.local/share/man/man1")]
    Man(Man),
    /// Print the version
    #[command(after_help = "Examples:\n  airlock version\n  airlock version --output json")]
    Version {
        #[command(flatten)]
        output: OutputOptions,
    },
    /// Explain how to get a newer version
    #[command(after_help = "Example:\n  airlock selfupdate")]
    Selfupdate,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print every setting with its description and value
    #[command(visible_alias = "get")]
    #[command(after_help = "Examples:\n  airlock config print\n  airlock config print | grep -A 20 '^\\[listen\\]'")]
    Print,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory;

    use super::*;

    /// The standard verbs that each noun takes, as the name of a command or as an alias. Nouns lack a verb where
    /// there is nothing that it could do.
    const NOUNS: &[(&str, &[&str])] = &[
        ("account clients", &["create", "list", "delete"]),
        ("account components", &["list"]),
        ("account keys", &["list"]),
        ("account users", &["create", "get", "list"]),
        ("applications", &["create", "get", "list", "update", "set", "delete"]),
        ("applications collaborators", &["create", "update", "set", "delete"]),
        ("applications euis", &["create", "list", "delete"]),
        ("applications keys", &["create", "list", "delete"]),
        ("applications pf", &["get", "update", "set"]),
        ("config", &["get"]),
        ("devices", &["create", "get", "list", "update", "set", "delete"]),
        ("gateways", &["create", "get", "list", "update", "delete"]),
        ("gateways collaborators", &["create", "update", "set", "delete"]),
        ("handler euis", &["get", "delete"]),
        ("history", &["get", "list"]),
        ("user", &["create", "get", "list"]),
        ("webhooks", &["create", "list", "update", "set", "delete"]),
    ];

    /// Commands with subcommands that do not stand for one kind of thing.
    const NOT_NOUNS: &[&str] = &["account", "bridge", "devices register", "functions", "handler"];

    /// The commands of v2, each with the least arguments that it takes.
    const V2: &str = "\
        applications add my-app Text --app-eui 70B3D57ED0000001 --skip-register --skip-select
        applications collaborators add my-app bob settings devices
        applications collaborators delete my-app bob
        applications delete my-app
        applications info my-app
        applications list
        applications pf
        applications pf set decoder decoder.js --skip-test
        applications register
        applications unregister
        applications select my-app 70B3D57ED0000001
        devices delete my-device --app-eui 70B3D57ED0000001 --app-id my-app
        devices list
        devices info my-device --format msb
        devices personalize my-device
        devices register my-device 0102030405060708 2B7E151628AED2A6ABF7158809CF4F3C 52.37,4.89
        devices register on-join my-prefix 2B7E151628AED2A6ABF7158809CF4F3C
        devices set my-device --16-bit-fcnt --attr-set key:value --fcnt-up 1 --override
        devices simulate my-device 01ff --port 2
        downlink my-device 01ff --access-key name --confirmed --fport 2 --json
        gateways collaborators add my-gateway bob gateway:status
        gateways collaborators delete my-gateway bob
        gateways delete my-gateway
        gateways info my-gateway
        gateways list
        gateways edit my-gateway --brand Brand --location 52.37,4.89 --status-public
        gateways register my-gateway EU_863_870 52.37,4.89
        subscribe --access-key name
        user
        user login
        user logout
        user register bob bob@example.com
        selfupdate
        version";

    /// Every command with subcommands, by its full name.
    fn groups(command: &clap::Command, name: &str, groups: &mut BTreeMap<String, clap::Command>) {
        for subcommand in command.get_subcommands().filter(|subcommand| subcommand.has_subcommands()) {
            let name = format!("{name} {}", subcommand.get_name()).trim().to_owned();
            self::groups(subcommand, &name, groups);
            groups.insert(name, subcommand.clone());
        }
    }

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_noun_takes_the_standard_verbs() {
        let mut groups = BTreeMap::new();
        self::groups(&Args::command(), "", &mut groups);
        groups.retain(|name, _| !NOT_NOUNS.contains(&name.as_str()));
        let nouns: Vec<_> = groups.keys().map(String::as_str).collect();
        assert_eq!(nouns, NOUNS.iter().map(|(noun, _)| *noun).collect::<Vec<_>>());
        for (noun, verbs) in NOUNS {
            for verb in *verbs {
                let names = |command: &clap::Command| {
                    command.get_name() == *verb || command.get_visible_aliases().any(|alias| alias == *verb)
                };
                assert!(groups[*noun].get_subcommands().any(names), "airlock {noun} {verb}");
            }
        }
    }

    /// The texts after the help of every command.
    fn examples(command: &clap::Command) -> String {
        let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        command.get_subcommands().map(examples).fold(own, |all, text| all + "\n" + &text)
    }

    // Conformance: completions, man, examples in the help
    #[test]
    fn every_example_in_the_help_parses() {
        let text = examples(&Args::command()).replace("\\\n", " ");
        let lines: Vec<_> = text.lines().filter(|line| line.trim().starts_with("airlock ")).collect();
        assert!(lines.len() > 20, "{text}");
        for line in lines {
            for words in transcripts::commands(line) {
                let result = Args::try_parse_from(words);
                assert!(result.is_ok(), "{line}: {}", result.unwrap_err());
            }
        }
    }

    /// The commands whose help has no example. Those with subcommands may have none.
    fn without_example(command: &clap::Command, name: &str) -> Vec<String> {
        let has_example = command.get_after_help().is_some_and(|help| help.to_string().contains("  airlock "));
        let missing = (!has_example && !command.has_subcommands()).then(|| name.to_owned());
        let of_subcommand =
            |command: &clap::Command| without_example(command, &format!("{name} {}", command.get_name()));
        missing.into_iter().chain(command.get_subcommands().flat_map(of_subcommand)).collect()
    }

    #[test]
    fn every_command_has_an_example() {
        assert_eq!(without_example(&Args::command(), "airlock"), Vec::<String>::new());
    }

    #[test]
    fn every_command_of_v2_parses() {
        for line in V2.lines() {
            let result = Args::try_parse_from(["airlock"].into_iter().chain(line.split_whitespace()));
            assert!(result.is_ok(), "{line}: {}", result.unwrap_err());
        }
    }
}
