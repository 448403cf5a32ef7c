//! Which models the fleet serves, merged from the replicas' own lists.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::value::RawValue;

/// Models listed per replica; adapters included, real engines list a few.
const MODELS_PER_REPLICA_MAX: usize = 1024;

/// One model as a replica lists it.
#[derive(Clone, Debug)]
pub struct Model {
    /// What clients call it.
    pub id: String,
    /// The replica's own object, byte for byte.
    pub object: Box<RawValue>,
}

/// Reads a replica's `/v1/models` answer.
///
/// # Errors
/// The answer is not such a list.
pub fn parse(body: &[u8]) -> Result<Vec<Model>, String> {
    #[derive(serde::Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        data: Vec<&'a RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Named {
        id: String,
    }
    let list: List<'_> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let named = |object: &RawValue| {
        let Named { id } = serde_json::from_str(object.get()).map_err(|error| error.to_string())?;
        Ok(Model {
            id,
            object: object.to_owned(),
        })
    };
    list.data
        .into_iter()
        .take(MODELS_PER_REPLICA_MAX)
        .map(named)
        .collect()
}

/// The fleet's models and who serves each.
#[derive(Debug)]
pub struct FleetModels {
    /// Model id to one flag per replica, in the fleet's order.
    serving: BTreeMap<String, Vec<bool>>,
    /// Which replicas have told their models; the others may serve anything.
    told: Vec<bool>,
    body: Bytes,
}

impl FleetModels {
    /// Merges the lists of all replicas; `None` for one that has not told. The first to list a model describes it.
    #[must_use]
    pub fn merge(lists: &[Option<Vec<Model>>]) -> Self {
        let mut serving: BTreeMap<String, Vec<bool>> = BTreeMap::new();
        let mut objects: Vec<&RawValue> = Vec::new();
        for (index, models) in lists.iter().enumerate() {
            for model in models.iter().flatten() {
                let flags = serving.entry(model.id.clone()).or_insert_with(|| {
                    objects.push(&model.object);
                    vec![false; lists.len()]
                });
                flags[index] = true;
            }
        }
        let data: Vec<&str> = objects.iter().map(|object| object.get()).collect();
        let body = format!(r#"{{"object":"list","data":[{}]}}"#, data.join(","));
        let told = lists.iter().map(Option::is_some).collect();
        Self {
            serving,
            told,
            body: Bytes::from(body),
        }
    }

    /// The answer to `GET /v1/models`.
    #[must_use]
    pub fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// Whether the fleet is known not to serve this model: every replica that told its models lacks it, and at
    /// least one told.
    #[must_use]
    pub fn is_unknown(&self, model: &str) -> bool {
        !self.serving.is_empty() && !self.serving.contains_key(model)
    }

    /// The model that a request without a name means: the only one, where there is one.
    #[must_use]
    pub fn only(&self) -> Option<&str> {
        let mut names = self.serving.keys();
        names
            .next()
            .filter(|_| names.next().is_none())
            .map(String::as_str)
    }

    /// Whether the replica at `index` may be asked for this model.
    #[must_use]
    pub fn may_serve(&self, index: usize, model: Option<&str>) -> bool {
        match model.and_then(|model| self.serving.get(model)) {
            Some(flags) => flags[index] || !self.told[index],
            None => true,
        }
    }

    /// The known models, comma separated, for an error message.
    #[must_use]
    pub fn names(&self) -> String {
        const NAMED_MAX: usize = 16;
        let names: Vec<&str> = self
            .serving
            .keys()
            .take(NAMED_MAX)
            .map(String::as_str)
            .collect();
        names.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ids: &[&str]) -> Vec<Model> {
        let objects: Vec<String> = ids
            .iter()
            .map(|id| format!(r#"{{"id":"{id}","object":"model"}}"#))
            .collect();
        parse(format!(r#"{{"object":"list","data":[{}]}}"#, objects.join(",")).as_bytes()).unwrap()
    }

    #[test]
    fn lists_merge_by_id_in_the_order_of_the_fleet() {
        let fleet = FleetModels::merge(&[Some(list(&["b", "a"])), None, Some(list(&["a", "c"]))]);
        let object = |id| format!(r#"{{"id":"{id}","object":"model"}}"#);
        let data = ["b", "a", "c"].map(object).join(",");
        assert_eq!(
            fleet.body(),
            format!(r#"{{"object":"list","data":[{data}]}}"#)
        );
        assert_eq!(fleet.names(), "a, b, c");
        let serves = |model| [0, 1, 2].map(|index| fleet.may_serve(index, Some(model)));
        assert_eq!(serves("b"), [true, true, false]);
        assert_eq!(serves("a"), [true, true, true]);
        assert!(fleet.is_unknown("x") && !fleet.is_unknown("c"));
    }

    #[test]
    fn a_fleet_that_told_nothing_serves_anything() {
        let fleet = FleetModels::merge(&[None, None]);
        assert!(!fleet.is_unknown("x") && fleet.may_serve(0, Some("x")));
    }

    #[test]
    fn an_answer_that_is_no_list_is_an_error() {
        assert!(parse(b"[]").is_err());
        assert!(parse(br#"{"data":[{"object":"model"}]}"#).is_err());
    }
}
