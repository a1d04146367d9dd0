//! Which pipelines feed which, as far as the configuration tells, and the order to drain them in.

use std::collections::{BTreeMap, BTreeSet};

use otel_arrow_dfe_config::engine::OtelDataflowSpec;
use otel_arrow_dfe_config::node::NodeKind;
use serde_json::Value;

use super::counts::Node;

/// A pipeline by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pipeline {
    pub(super) group: String,
    pub(super) pipeline: String,
}

/// Where pipelines meet.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Port(u16),
    Topic(String),
}

/// Pipelines in the order to drain them: those of a stage feed none of an earlier one. Pipelines that feed each other
/// in a circle share the last stage.
pub(super) fn stages(spec: &OtelDataflowSpec) -> Vec<Vec<Pipeline>> {
    let mut inputs: BTreeMap<Pipeline, BTreeSet<Place>> = BTreeMap::new();
    let mut outputs: BTreeMap<Pipeline, BTreeSet<Place>> = BTreeMap::new();
    for (group, group_config) in &spec.groups {
        for (id, pipeline_config) in &group_config.pipelines {
            let pipeline = Pipeline { group: group.to_string(), pipeline: id.to_string() };
            let _ = inputs.entry(pipeline.clone()).or_default();
            for (_, node) in pipeline_config.node_iter() {
                match node.kind() {
                    NodeKind::Receiver => listening(&node.config, inputs.entry(pipeline.clone()).or_default()),
                    NodeKind::Exporter => sending(&node.config, outputs.entry(pipeline.clone()).or_default()),
                    _ => {}
                }
            }
        }
    }
    order(inputs, &outputs)
}

fn order(
    mut left: BTreeMap<Pipeline, BTreeSet<Place>>,
    outputs: &BTreeMap<Pipeline, BTreeSet<Place>>,
) -> Vec<Vec<Pipeline>> {
    let mut stages = Vec::new();
    while !left.is_empty() {
        let is_fed = |pipeline: &Pipeline, places: &BTreeSet<Place>| {
            left.keys()
                .any(|other| other != pipeline && outputs.get(other).is_some_and(|sends| !sends.is_disjoint(places)))
        };
        let mut stage: Vec<_> =
            left.iter().filter(|(pipeline, places)| !is_fed(pipeline, places)).map(|(p, _)| p.clone()).collect();
        if stage.is_empty() {
            stage = left.keys().cloned().collect();
        }
        left.retain(|pipeline, _| !stage.contains(pipeline));
        stages.push(stage);
    }
    stages
}

/// All nodes in the order of the flow: stage by stage, and in each pipeline from the receivers to the exporters.
pub(super) fn nodes(spec: &OtelDataflowSpec, stages: &[Vec<Pipeline>]) -> Vec<Node> {
    let mut out = Vec::new();
    for pipeline in stages.iter().flatten() {
        let config = spec
            .groups
            .iter()
            .find(|(group, _)| group.as_ref() == pipeline.group)
            .and_then(|(_, group)| group.pipelines.iter().find(|(id, _)| id.as_ref() == pipeline.pipeline));
        let Some((_, config)) = config else { continue };
        let names: Vec<String> = config.node_iter().map(|(id, _)| id.to_string()).collect();
        let edges: Vec<(String, String)> = config
            .connection_iter()
            .flat_map(|connection| {
                let targets = connection.to_nodes();
                connection.from_sources().into_iter().flat_map(move |source| {
                    let source = source.node_id().to_string();
                    targets.clone().into_iter().map(move |target| (source.clone(), target.to_string()))
                })
            })
            .collect();
        out.extend(along(names, &edges).into_iter().map(|node| Node {
            group: pipeline.group.clone(),
            pipeline: pipeline.pipeline.clone(),
            node,
        }));
    }
    out
}

/// Names in an order where each comes after those that feed it, else by name.
fn along(mut left: Vec<String>, edges: &[(String, String)]) -> Vec<String> {
    left.sort();
    let mut out = Vec::new();
    while !left.is_empty() {
        let is_fed = |name: &String| edges.iter().any(|(from, to)| to == name && from != name && left.contains(from));
        // The engine refuses circles; were there one, its first name would come next.
        let at = left.iter().position(|name| !is_fed(name)).unwrap_or(0);
        out.push(left.remove(at));
    }
    out
}

/// Ports and topics that a receiver takes from.
fn listening(config: &Value, places: &mut BTreeSet<Place>) {
    walk(config, &mut |key, text| match key {
        "listening_addr" => {
            places.extend(text.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).map(Place::Port))
        }
        "topic" => places.extend([Place::Topic(text.to_owned())]),
        _ => {}
    });
}

/// Ports of this machine and topics that an exporter sends to.
fn sending(config: &Value, places: &mut BTreeSet<Place>) {
    walk(config, &mut |key, text| match key {
        key if key.ends_with("endpoint") => places.extend(local_port(text).map(Place::Port)),
        "topic" => places.extend([Place::Topic(text.to_owned())]),
        _ => {}
    });
}

fn local_port(endpoint: &str) -> Option<u16> {
    let authority = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let authority = authority.split('/').next()?;
    let (host, port) = authority.rsplit_once(':')?;
    let is_local = matches!(host, "localhost" | "[::1]" | "0.0.0.0" | "[::]") || host.starts_with("127.");
    if is_local { port.parse().ok() } else { None }
}

fn walk(value: &Value, found: &mut impl FnMut(&str, &str)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) => found(key, text),
                    other => walk(other, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline(name: &str) -> Pipeline {
        Pipeline { group: "g".into(), pipeline: name.into() }
    }

    fn graph(edges: &[(&str, &[u16], &[u16])]) -> Vec<Vec<Pipeline>> {
        let places = |ports: &[u16]| ports.iter().map(|port| Place::Port(*port)).collect::<BTreeSet<_>>();
        let inputs = edges.iter().map(|(name, listens, _)| (pipeline(name), places(listens))).collect();
        let outputs = edges.iter().map(|(name, _, sends)| (pipeline(name), places(sends))).collect();
        order(inputs, &outputs)
    }

    #[test]
    fn feeders_come_first() {
        let stages =
            graph(&[("backend", &[3], &[]), ("edge", &[1], &[2]), ("relay", &[2], &[3]), ("other", &[9], &[])]);
        assert_eq!(
            stages,
            [vec![pipeline("edge"), pipeline("other")], vec![pipeline("relay")], vec![pipeline("backend")]]
        );
    }

    #[test]
    fn a_circle_ends_together() {
        let stages = graph(&[("a", &[1], &[2]), ("b", &[2], &[1]), ("feeder", &[], &[1])]);
        assert_eq!(stages, [vec![pipeline("feeder")], vec![pipeline("a"), pipeline("b")]]);
    }

    #[test]
    fn nodes_follow_the_flow() {
        let edge = |from: &str, to: &str| (from.to_owned(), to.to_owned());
        let edges = [edge("z_in", "mid"), edge("b_in", "mid"), edge("mid", "a_out")];
        let names = ["a_out", "mid", "z_in", "b_in"].map(str::to_owned).to_vec();
        assert_eq!(along(names, &edges), ["b_in", "z_in", "mid", "a_out"]);
    }

    #[test]
    fn only_local_endpoints_count() {
        assert_eq!(local_port("http://127.0.0.1:4317"), Some(4317));
        assert_eq!(local_port("https://localhost:4318/v1/logs"), Some(4318));
        assert_eq!(local_port("http://collector.example:4317"), None);
        let mut places = BTreeSet::new();
        listening(&serde_json::json!({"protocols": {"grpc": {"listening_addr": "0.0.0.0:4317"}}}), &mut places);
        assert_eq!(places, BTreeSet::from([Place::Port(4317)]));
    }
}
