package wrapper

import "context"

// These are for the functions below, as http.DefaultClient is for http.Get.
var (
	client Client
	pool   Pool
	users  = NewUsers("ann", 42)
)

func init() { pool.Put("ann", 1) }

// DoHost is Client.DoHost.
func DoHost(ctx context.Context, host string, fn func(context.Context) error) error {
	return client.hosts.Do(ctx, host, fn)
}

// TryHost is Client.DoHost without a result.
func TryHost(ctx context.Context, host string, fn func(context.Context) error) {
	client.hosts.Do(ctx, host, fn)
}

// DoShard is Client.DoShard.
func DoShard(ctx context.Context, shard int, fn func(context.Context) error) error {
	return client.shards.Do(ctx, shard, fn)
}

// AskHost is Client.AskHost.
func AskHost(host string) bool {
	p, err := client.hosts.Allow(host)
	if err != nil {
		return false
	}
	p.Success()
	return true
}

// Open is Pool.Open.
func Open(name string, open func() (int, error)) (int, error) {
	return pool.cache.GetOrCreate(name, open)
}

// Warm is Pool.Warm.
func Warm(name string, open func() (int, error)) { pool.cache.GetOrCreate(name, open) }

// Value is Pool.Get.
func Value(name string) (int, bool) { return pool.cache.Get(name) }

// Borrow is Pool.Borrow.
func Borrow(ctx context.Context, name string, open func(context.Context, string) (int, error)) (int, error) {
	return pool.Borrow(ctx, name, open)
}

// Age is Users.Age.
func Age(name string) (int, bool) { return users.ages.Get(name) }

// RootAge is Users.RootAge.
func RootAge() (int, bool) { return users.root.Get() }
