//! Lanes with the wires of the configured protocol.

use std::io;
use std::sync::Arc;

use catchment_delivery::encode::otap::OtapSettings as Encoding;
use catchment_delivery::lane::{Lane, LaneError, LaneHandle, Resolved, RetryBudget, lane};
use catchment_delivery::load::{Load, OtapWriter, OtlpWriter};
use catchment_delivery::outcome::Outcome;
use catchment_delivery::payload::Payload as _;
use catchment_delivery::wire::connection::{Connect, Connection, ConnectionSettings};
use catchment_delivery::wire::otap::{Otap, OtapSettings};
use catchment_delivery::wire::otlp_grpc::{GrpcSettings, OtlpGrpc};
use catchment_delivery::wire::otlp_http::{HttpSettings, OtlpHttp};
use catchment_delivery::wire::switch::Switch;
use catchment_delivery::wire::{Tally, Wire};
use http::{HeaderMap, Uri};
use otel_arrow_dfe_otap::otap_grpc::client_settings::GrpcClientSettings;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::config::{Client, Config, HttpClient, Protocol};
use super::connect::{GrpcConnect, HttpConnect};

/// The lanes of a node, which run as tasks of this thread.
pub(super) struct Lanes<T> {
    pub(super) handles: Vec<LaneHandle<Load, T>>,
    pub(super) tasks: JoinSet<Result<(), LaneError>>,
}

impl<T: 'static> Lanes<T> {
    /// Makes and starts the lanes.
    ///
    /// # Errors
    /// If the address of the server, or a level of compression, cannot be used.
    pub(super) fn start(config: &Config, verdicts: &UnboundedSender<Resolved<T>>) -> io::Result<Self> {
        let mut lanes = Self { handles: Vec::new(), tasks: JoinSet::new() };
        let budget = config.budget.map(|(per_second, burst)| RetryBudget::new(per_second, burst));
        for number in 0..config.count.get() {
            let mut add = Adding { lanes: &mut lanes, number, config, verdicts, budget: budget.as_ref() };
            match &config.client {
                Client::Grpc(settings) => add.grpc(settings)?,
                Client::Http(client) => add.http(client)?,
            }
        }
        Ok(lanes)
    }
}

/// One more lane.
struct Adding<'a, T> {
    lanes: &'a mut Lanes<T>,
    number: usize,
    config: &'a Config,
    verdicts: &'a UnboundedSender<Resolved<T>>,
    budget: Option<&'a RetryBudget>,
}

impl<T: 'static> Adding<'_, T> {
    fn wire<W: Wire<Load> + 'static>(&mut self, wire: W) {
        let (handle, lane) = lane(self.number, self.config.lane.clone(), wire, self.verdicts.clone());
        let lane: Lane<_, _, _> = match self.budget {
            Some(budget) => lane.budgeted(budget.clone()),
            None => lane,
        };
        self.lanes.handles.push(handle);
        let _ = self.lanes.tasks.spawn_local(lane.run());
    }

    fn connection<C: Connect>(&self, connect: C, connect_timeout: std::time::Duration) -> Connection<C> {
        let max_age = self.config.max_connection_age;
        Connection::new(connect, ConnectionSettings { connect_timeout, max_age, first: self.number })
    }

    fn grpc(&mut self, client: &GrpcClientSettings) -> io::Result<()> {
        let config = self.config;
        let settings = Arc::new(client.clone());
        let origin: Uri = client.grpc_endpoint.parse().map_err(io::Error::other)?;
        let headers =
            client.build_static_metadata().map_or_else(HeaderMap::new, tonic::metadata::MetadataMap::into_headers);
        let connection =
            || Ok::<_, io::Error>(self.connection(GrpcConnect::new(settings.clone())?, client.connect_timeout));
        let grpc = GrpcSettings {
            origin: origin.clone(),
            headers: headers.clone(),
            compression: config.compression,
            max_request_bytes: config.max_request_bytes,
            max_response_bytes: config.max_response_bytes,
            resource_exhausted: config.resource_exhausted,
        };
        if config.protocol != Protocol::Otap {
            let wire = OtlpGrpc::new(connection()?, OtlpWriter::default(), grpc)?;
            self.wire(wire);
            return Ok(());
        }
        let stream = &config.stream;
        let otap = OtapSettings {
            origin,
            headers,
            compression: config.compression,
            max_request_bytes: config.max_request_bytes,
            status_timeout: stream.status_timeout,
            max_lifetime: stream.max_lifetime,
            max_batches: stream.max_batches,
            close_timeout: stream.close_timeout,
        };
        let writer = OtapWriter::new(Encoding { zstd_level: config.ipc_level }).map_err(io::Error::other)?;
        let otap = Otap::new(connection()?, writer, otap)?;
        match stream.downgrade {
            Some(probe_after) => {
                let otlp = OtlpGrpc::new(connection()?, OtlpWriter::default(), grpc)?;
                self.wire(Switch::new(otap, otlp, probe_after));
            }
            None => self.wire(otap),
        }
        Ok(())
    }

    fn http(&mut self, client: &HttpClient) -> io::Result<()> {
        let config = self.config;
        let client = Arc::new(client.clone());
        let settings = HttpSettings {
            targets: client.targets.clone(),
            headers: client.headers.clone(),
            compression: config.compression,
            max_request_bytes: config.max_request_bytes,
            max_response_bytes: config.max_response_bytes,
        };
        let server = |uri: &Uri| (uri.scheme().cloned(), uri.authority().cloned());
        let mut servers: Vec<Uri> = Vec::new();
        let of = client.targets.each_ref().map(|target| {
            let known = servers.iter().position(|known| server(known) == server(target));
            known.unwrap_or_else(|| {
                servers.push(target.clone());
                servers.len() - 1
            })
        });
        let wires: io::Result<Vec<_>> = servers
            .into_iter()
            .map(|target| {
                let connect = HttpConnect::new(client.clone(), target)?;
                let connection = self.connection(connect, client.settings.connect_timeout);
                OtlpHttp::new(connection, OtlpWriter::default(), settings.clone())
            })
            .collect();
        self.wire(Servers { wires: wires?, of, last: 0 });
        Ok(())
    }
}

/// A wire for each server that some signal goes to.
struct Servers<W> {
    wires: Vec<W>,
    /// By signal.
    of: [usize; 3],
    last: usize,
}

impl<W: Wire<Load>> Wire<Load> for Servers<W> {
    type Kept = W::Kept;

    async fn attempt(&mut self, loads: &[Load], kept: &mut Option<W::Kept>, deadline: Instant) -> Outcome {
        let Some(load) = loads.first() else { return Outcome::OK };
        self.last = self.of[load.signal().index()];
        self.wires[self.last].attempt(loads, kept, deadline).await
    }

    fn abandon(&mut self) -> bool {
        self.wires[self.last].abandon()
    }

    fn tally(&mut self) -> Tally {
        let mut sum = Tally::default();
        for wire in &mut self.wires {
            sum.add(wire.tally());
        }
        sum
    }

    async fn close(&mut self) {
        for wire in &mut self.wires {
            wire.close().await;
        }
    }
}
