package registry

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/latchfree/latchfree/cluster/internal/natstest"
	"github.com/latchfree/latchfree/shardedregistry"
)

// TestRegistry has the tests that need one server and nothing of its own.
func TestRegistry(t *testing.T) {
	shared.cluster = natstest.Start(t, 1)
	shared.js = shared.cluster.JetStream()
	for name, f := range map[string]func(*testing.T){
		"methods":             testMethods,
		"lost answer":         testLostAnswer,
		"lost request":        testLostRequest,
		"answer and conflict": testLostAnswerAndConflict,
		"foreign":             testForeign,
		"foreign status":      testForeignStatus,
		"normalize":           testNormalize,
		"normalize foreign":   testNormalizeForeign,
		"encode":              testEncode,
		"config":              testConfig,
		"unsuitable":          testUnsuitable,
		"unreachable":         testUnreachable,
		"too large":           testTooLarge,
		"too many mirrors":    testTooManyMirrors,
		"close":               testClose,
		"close blocked":       testCloseBlocked,
		"other clients":       testOtherClients,
		"stored key":          testStoredKey,
		"purged unnoticed":    testPurgedUnnoticed,
		"made anew":           testMadeAnew,
		"list again":          testListAgain,
		"silent":              testSilent,
		"held up":             testHeldUp,
		"watch":               testWatch,
		"claims":              testClaims,
		"sync over gaps":      testSyncOverGaps,
		"shared beats":        testSharedBeats,
		"offers":              testOffers,
		"requests":            testRequests,
		"deaf host":           testDeafHost,
		"lost delivery":       testLostDelivery,
		"contradiction":       testContradiction,
		"early from before":   testEarlyFromBefore,
		"early writes":        testEarlyWrites,
		"early and overtaken": testEarlyOvertaken,
		"stored elsewhere":    testStoredElsewhere,
		"model":               testModel,
		"exit while settled":  testExitWhileSettled,
		"listing behind":      testListingBehind,
		"forgotten markers":   testForgottenMarkers,
		"created in gap":      testCreatedInGap,
		"lost revision":       testLostRevision,
		"created forgotten":   testCreatedAndForgotten,
		"anew and cut short":  testMadeAnewCutShort,
		"create in another":   testCreateInBucketMadeAnew,
		"put in another":      testPutInBucketMadeAnew,
		"expired in gap":      testExpiredInGap,
		"wait invalid":        testWaitInvalid,
		"update keeps ttl":    testUpdateKeepsTTL,
		"updates end":         testUpdatesEnd,
		"ends are forgotten":  testEndsAreForgotten,
		"reserve comes back":  testReserveComesBack,
		"wait closed":         testWaitClosed,
		"wait made anew":      testWaitInBucketMadeAnew,
		"exits again":         testExitsAgain,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t)
		})
	}
}

func testMethods(t *testing.T) {
	ctx := within(t)
	kv := bucket(t, shared.js)
	r := opened[plan](t, shared.js, kv)
	other := opened[plan](t, shared.js, kv)

	require.Zero(t, r.Len())
	v1, err := r.Create(ctx, "backup", plan{"ada", 1})
	require.NoError(t, err)
	e, ok := r.Lookup("backup")
	require.True(t, ok)
	require.Equal(t, Entry[string, plan]{Key: "backup", Value: plan{"ada", 1}, Version: v1}, e)
	kve, err := kv.Get(ctx, "backup")
	require.NoError(t, err)
	require.Equal(t, uint64(v1), kve.Revision())

	_, err = other.Create(ctx, "backup", plan{})
	require.ErrorIs(t, err, ErrExists)
	var exists *shardedregistry.ExistsError
	require.ErrorAs(t, err, &exists)
	require.Equal(t, v1, exists.Version)

	e, err = other.Update(ctx, "backup", func(p plan) (plan, error) { p.N++; return p, nil })
	require.NoError(t, err)
	require.Equal(t, 2, e.Value.N)
	require.Greater(t, e.Version, v1)

	_, err = r.UpdateIf(ctx, "backup", v1, plan{})
	require.ErrorIs(t, err, ErrConflict)
	v3, err := r.UpdateIf(ctx, "backup", e.Version, plan{"eve", 3})
	require.NoError(t, err)
	_, err = r.UpdateIf(ctx, "backup", v3+1000, plan{})
	require.ErrorIs(t, err, ErrConflict)
	_, err = r.UpdateIf(ctx, "nobody", v3, plan{})
	require.ErrorIs(t, err, ErrNotFound)
	_, err = r.Update(ctx, "nobody", func(p plan) (plan, error) { return p, nil })
	require.ErrorIs(t, err, ErrNotFound)
	boom := errors.New("boom")
	_, err = r.Update(ctx, "backup", func(p plan) (plan, error) { return p, boom })
	require.Equal(t, boom, err)

	require.ErrorIs(t, r.DeleteIf(ctx, "backup", v1), ErrConflict)
	e, ok, err = other.Delete(ctx, "backup")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, Entry[string, plan]{Key: "backup", Value: plan{"eve", 3}, Version: v3}, e)
	_, ok, err = r.Delete(ctx, "backup")
	require.NoError(t, err)
	require.False(t, ok)
	require.ErrorIs(t, r.DeleteIf(ctx, "backup", v3), ErrNotFound)
	_, err = r.UpdateIf(ctx, "backup", v3+1, plan{}) // the revision of the marker
	require.ErrorIs(t, err, ErrNotFound)

	v5, err := r.Create(ctx, "backup", plan{"ada", 5}) // over the marker
	require.NoError(t, err)
	require.Greater(t, v5, v3)
	v6, err := other.Put(ctx, "backup", plan{"ada", 6})
	require.NoError(t, err)
	require.Greater(t, v6, v5)
	v7, err := r.Put(ctx, "new", plan{"ada", 7})
	require.NoError(t, err)
	require.NoError(t, r.DeleteIf(ctx, "new", v7))
	require.NoError(t, r.Sync(ctx))
	require.Equal(t, 1, r.Len())
	got, ok := r.Get("backup")
	require.True(t, ok)
	require.Equal(t, plan{"ada", 6}, got)
}
