// Package changeset keeps the changesets of a cowchangeset.Tracker in a stream of NATS JetStream.
package changeset
