//! A consumer of a broker.

use amqprs::{
    BasicProperties, FieldTable,
    channel::{
        BasicConsumeArguments, BasicGetArguments, Channel, ConsumerMessage, ExchangeDeclareArguments,
        ExchangeDeleteArguments, QueueBindArguments, QueueDeclareArguments,
    },
    connection::{Connection, OpenConnectionArguments},
};
use serde_json::Value;
use testing::RabbitMq;
use tokio::{sync::mpsc::UnboundedReceiver, task::yield_now, time::timeout};

use crate::harness::WAIT_MAX;

/// A message that came.
pub struct Received {
    pub key: String,
    pub properties: BasicProperties,
    pub body: Value,
}

impl Received {
    pub fn number(&self) -> u64 {
        self.body["n"].as_u64().unwrap_or_else(|| panic!("{} has no number", self.body))
    }
}

/// A queue of a broker, and what comes from it.
pub struct Consumer {
    messages: UnboundedReceiver<ConsumerMessage>,
    _connection: Connection,
    _channel: Channel,
}

/// Connects, in several attempts if it must: beside other work, a broker closes connections that it was slow to open.
pub async fn connect(rabbitmq: &RabbitMq) -> (Connection, Channel) {
    let arguments = OpenConnectionArguments::new("127.0.0.1", rabbitmq.address().port(), "guest", "guest");
    let connecting = async {
        loop {
            if let Ok(connection) = Connection::open(&arguments).await
                && let Ok(channel) = connection.open_channel(None).await
            {
                return (connection, channel);
            }
            yield_now().await;
        }
    };
    timeout(WAIT_MAX, connecting).await.expect("the broker takes a connection")
}

pub async fn declare_exchange(channel: &Channel, exchange: &str) {
    let mut arguments = ExchangeDeclareArguments::new(exchange, "topic");
    channel.exchange_declare(arguments.durable(true).finish()).await.unwrap();
}

pub async fn delete_exchange(channel: &Channel, exchange: &str) {
    channel.exchange_delete(ExchangeDeleteArguments::new(exchange)).await.unwrap();
}

/// Binds a durable queue with the exchange's name.
pub async fn bind_queue(channel: &Channel, exchange: &str, pattern: &str, arguments: FieldTable) {
    let mut queue = QueueDeclareArguments::durable_client_named(exchange);
    channel.queue_declare(queue.arguments(arguments).finish()).await.unwrap();
    channel.queue_bind(QueueBindArguments::new(exchange, exchange, pattern)).await.unwrap();
}

/// Takes a message from a queue, if it has one.
pub async fn take_one(channel: &Channel, queue: &str) -> Option<Value> {
    let arguments = BasicGetArguments::new(queue).no_ack(true).finish();
    let (_, _, body) = channel.basic_get(arguments).await.unwrap()?;
    Some(serde_json::from_slice(&body).unwrap())
}

impl Consumer {
    /// Declares an exchange, and binds a queue of the same name.
    pub async fn bind(rabbitmq: &RabbitMq, exchange: &str, pattern: &str) -> Self {
        let (connection, channel) = connect(rabbitmq).await;
        declare_exchange(&channel, exchange).await;
        bind_queue(&channel, exchange, pattern, FieldTable::new()).await;
        Self::of(connection, channel, exchange).await
    }

    /// Consumes a queue.
    pub async fn of(connection: Connection, channel: Channel, queue: &str) -> Self {
        let arguments = BasicConsumeArguments::new(queue, "").manual_ack(false).finish();
        let (_, messages) = channel.basic_consume_rx(arguments).await.unwrap();
        Self { messages, _connection: connection, _channel: channel }
    }

    pub async fn next(&mut self) -> Received {
        self.try_next().await.expect("a message comes")
    }

    /// The next message; none if it does not come in time.
    pub async fn try_next(&mut self) -> Option<Received> {
        let message = timeout(WAIT_MAX, self.messages.recv()).await.ok()?.expect("the broker keeps the connection");
        let key = message.deliver.unwrap().routing_key().clone();
        let body = serde_json::from_slice(&message.content.unwrap()).unwrap();
        Some(Received { key, properties: message.basic_properties.unwrap(), body })
    }

    pub async fn take(&mut self, count: usize) -> Vec<Received> {
        let mut received = Vec::new();
        while received.len() < count {
            received.push(self.next().await);
        }
        received
    }
}
