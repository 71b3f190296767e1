//! Where the messages of a handler go: its broker, its queues, a broker of others, and the history.

use std::{fmt::Display, sync::Arc};

use anyhow::Context as _;
use handler::output::{AllOutputs, Output, OutputSettings, RecordedOutput, mqtt::MqttOutput, queued::QueuedOutput};
use history::History;
use mqtt::Router;
use outputs::{OperatorOutputs, OperatorSettings, Outputs};
use server::auth::ComponentToken;
use tokio::runtime::Handle;

use super::{delivery_threads::DeliveryThreads, external_broker::ExternalBroker};
use crate::serve::{context::Context, history::open as open_history};

/// Where the messages of a handler go.
pub(super) struct MessageOutputs {
    /// Run the deliveries of the queues.
    pub(super) delivery_threads: DeliveryThreads,
    /// Those with a queue for each destination.
    pub(super) queued: Arc<Outputs>,
    /// The records of messages.
    pub(super) history: Arc<History>,
    /// All outputs, without a record.
    pub(super) unrecorded: Arc<dyn Output>,
    /// All outputs; what they publish is recorded, too.
    pub(super) recorded: Arc<dyn Output>,
}

impl MessageOutputs {
    /// Opens the history, and starts the outputs that the settings name.
    pub(super) fn start(
        context: &Context,
        router: &Arc<Router>,
        external_broker: Option<&ExternalBroker>,
        token: &Arc<ComponentToken>,
    ) -> anyhow::Result<Self> {
        let delivery_threads = DeliveryThreads::start().context("cannot start the threads of deliveries")?;
        let queued = Arc::new(queued_outputs(context, token, delivery_threads.handle())?);
        let mut all: Vec<Arc<dyn Output>> = vec![
            Arc::new(MqttOutput::new(router.clone(), &context.settings.output)),
            Arc::new(QueuedOutput::new(queued.clone(), context.clock.clone())),
        ];
        all.extend(external_broker.map(ExternalBroker::output));
        let unrecorded: Arc<dyn Output> = Arc::new(AllOutputs(all));
        let history = open_history(context)?;
        let clock = context.clock.clone();
        let recorded = Arc::new(RecordedOutput { output: unrecorded.clone(), history: history.clone(), clock });
        Ok(Self { delivery_threads, queued, history, unrecorded, recorded })
    }
}

/// The outputs with queues, which deliver what earlier processes left.
fn queued_outputs(context: &Context, token: &Arc<ComponentToken>, threads: Handle) -> anyhow::Result<Outputs> {
    let OutputSettings { delivery, amqp, redis, kafka, .. } = &context.settings.output;
    let environment = outputs::Environment {
        store: context.store.clone(),
        is_shared: context.settings.store.redis.is_some(),
        clock: context.clock.clone(),
        random: context.random.clone(),
        keys: context.sealing_keys()?,
        operator: OperatorOutputs::start(OperatorSettings { amqp, redis, kafka }, delivery, &context.random)?,
        look_up: outputs::system_look_up(),
        ledger: context.ledger.clone(),
        owners: context.owners.clone(),
        grants: Arc::new(context.grants(token)?),
        threads,
    };
    Outputs::start(delivery, environment).context("cannot start the outputs")
}

/// Records who gets messages, or brings them, by the settings of the operator. No right of a user stands behind them.
pub(super) fn note_receivers(context: &Context, external_broker: Option<&ExternalBroker>) {
    let OutputSettings { amqp, redis, kafka, .. } = &context.settings.output;
    let note = |event, what: &dyn Display, name: &dyn Display| {
        context.audit.note(event, &"settings", &format_args!("{what} {name}"));
    };
    amqp.iter().for_each(|output| note("output started", &"amqp", &output.name));
    redis.iter().for_each(|output| note("output started", &"redis", &output.name));
    kafka.iter().for_each(|output| note("output started", &"kafka", &output.name));
    if let Some(broker) = external_broker {
        note("output started", &"external broker", &broker.address());
    }
    for network in &context.settings.bridge.into {
        // One without a name has been refused.
        let name = network.name().unwrap_or_default();
        network.applications.iter().for_each(|settings| note("bridge started", &name, &settings.app_id));
    }
}
