package wrapper

import "github.com/latchfree/latchfree/shardedregistry"

// Users keeps an age for each name, and has a handle to one.
type Users struct {
	ages shardedregistry.Registry[string, int]
	root shardedregistry.Ref[string, int]
}

// NewUsers returns Users of which root is one.
func NewUsers(root string, age int) *Users {
	u := new(Users)
	u.Put(root, age)
	u.root = u.ages.Ref(root)
	return u
}

// Put is Registry.Put.
func (u *Users) Put(name string, age int) { u.ages.Put(name, age) }

// Age is Registry.Get.
func (u *Users) Age(name string) (int, bool) { return u.ages.Get(name) }

// Entry is Registry.Lookup.
func (u *Users) Entry(name string) (shardedregistry.Entry[string, int], bool) {
	return u.ages.Lookup(name)
}

// RootAge is Ref.Get.
func (u *Users) RootAge() (int, bool) { return u.root.Get() }

// RootEntry is Ref.Lookup.
func (u *Users) RootEntry() (shardedregistry.Entry[string, int], bool) { return u.root.Lookup() }

// Birthday is Registry.Update of a function that captures nothing.
func (u *Users) Birthday(name string) error {
	_, err := u.ages.Update(name, func(age int) (int, error) { return age + 1, nil })
	return err
}

// Replace is Registry.UpdateIf.
func (u *Users) Replace(name string, age int) {
	if e, ok := u.ages.Lookup(name); ok {
		u.ages.UpdateIf(name, e.Version, age)
	}
}
