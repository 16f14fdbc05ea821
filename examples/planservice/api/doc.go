// Package api has the wire types of planservice and a client for all of its routes.
package api
