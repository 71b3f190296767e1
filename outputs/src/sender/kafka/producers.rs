//! The producers of one connection: one for each partition, which sends records together that come together.

use std::{collections::HashMap, num::NonZeroUsize, sync::Arc, time::Duration};

use lru::LruCache;
use parking_lot::Mutex;
use rskafka::{
    client::{
        Client,
        error::Error,
        partition::{Compression, PartitionClient, UnknownTopicHandling},
        producer::{self, BatchProducer, BatchProducerBuilder, aggregator::RecordAggregator},
    },
    record::Record,
};
use tokio::sync::OnceCell;

use super::{advice::is_too_large, partitioner};

/// Time that records wait for others.
const LINGER: Duration = Duration::from_millis(2);
/// Maximum size of the records sent together, in bytes. Every message fits.
const BATCH_BYTES_MAX: usize = 512 << 10;
/// Maximum number of partitions with a producer.
const PRODUCERS_MAX: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4095);

/// The partitions of each topic, in their order.
type Topics = HashMap<String, Vec<i32>>;
/// A producer, once it has been made.
type MadeOnce = Arc<OnceCell<Producer>>;

/// The producers of one connection.
pub(super) struct Producers {
    client: Client,
    compression: Compression,
    topics: Mutex<Arc<Topics>>,
    producers: Mutex<LruCache<(String, i32), MadeOnce>>,
}

/// Sends to one partition.
struct Producer {
    partition: Arc<PartitionClient>,
    batches: BatchProducer<RecordAggregator>,
}

/// Reasons why a record was not confirmed.
pub(super) enum Failure {
    /// There is no such topic.
    NoTopic,
    /// It is larger than the broker takes.
    TooLarge,
    /// It says nothing about the record.
    Other(Arc<Error>),
}

impl Producers {
    pub(super) async fn new(client: Client, compression: Compression) -> Result<Self, Error> {
        let producers = Mutex::new(LruCache::new(PRODUCERS_MAX));
        let this = Self { client, compression, topics: Mutex::default(), producers };
        this.refresh().await?;
        Ok(this)
    }

    /// Asks the cluster which topics there are.
    pub(super) async fn refresh(&self) -> Result<(), Error> {
        let topics = self.client.list_topics().await?.into_iter();
        let topics = topics.map(|topic| (topic.name, Vec::from_iter(topic.partitions)));
        *self.topics.lock() = Arc::new(topics.collect());
        Ok(())
    }

    /// Sends a record, and returns when all replicas that are in sync have it.
    pub(super) async fn send(&self, topic: &str, key: &[u8], record: Record) -> Result<(), Failure> {
        let topics = self.topics.lock().clone();
        let partitions = topics.get(topic).map_or(&[][..], Vec::as_slice);
        let Some(partition) = partitions.get(partitioner::index(key, partitions.len())) else {
            return Err(Failure::NoTopic);
        };
        let cell = self.cell(topic, *partition);
        let producer = cell.get_or_try_init(|| self.producer(topic, *partition)).await.map_err(Failure::new)?;
        match producer.batches.produce(record.clone()).await {
            Ok(_) => Ok(()),
            Err(producer::Error::Client(error)) if is_too_large(&error) => {
                // Others in the batch may have been too much: alone it shows.
                let alone = producer.partition.produce(vec![record], self.compression).await;
                alone.map(|_| ()).map_err(Failure::new)
            }
            Err(producer::Error::Client(error)) => Err(Failure::Other(error)),
            Err(error) => Err(Failure::Other(Arc::new(Error::InvalidResponse(error.to_string())))),
        }
    }

    fn cell(&self, topic: &str, partition: i32) -> MadeOnce {
        self.producers.lock().get_or_insert((topic.to_owned(), partition), Arc::default).clone()
    }

    async fn producer(&self, topic: &str, partition: i32) -> Result<Producer, Error> {
        let partition = self.client.partition_client(topic, partition, UnknownTopicHandling::Error).await?;
        let partition = Arc::new(partition);
        let builder = BatchProducerBuilder::new(partition.clone()).with_linger(LINGER);
        let batches = builder.with_compression(self.compression).build(RecordAggregator::new(BATCH_BYTES_MAX));
        Ok(Producer { partition, batches })
    }
}

impl Failure {
    fn new(error: Error) -> Self {
        if is_too_large(&error) { Self::TooLarge } else { Self::Other(Arc::new(error)) }
    }
}
