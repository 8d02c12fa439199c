#include "mpi/comm/attributes.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace warren::comm {
namespace {

std::vector<void*> deleted;

int remember_delete(MPI_Comm, int, void* value, void*) {
    deleted.push_back(value);
    return MPI_SUCCESS;
}
int refuse_delete(MPI_Comm, int, void*, void*) {
    return MPI_ERR_OTHER;
}
int copy_next(MPI_Comm, int, void* extra, void* value, void* copied, int* flag) {
    *static_cast<void**>(copied) = static_cast<char*>(value) + 1;
    *flag = extra != nullptr;
    return MPI_SUCCESS;
}

template <typename Function>
Keyval::Copy as_copy(Function* function) {
    return reinterpret_cast<Keyval::Copy>(function);
}

class AttributesTest : public ::testing::Test {
  protected:
    void SetUp() override { deleted.clear(); }

    Keyval& key(Keyval::Copy copy, int (*remove)(MPI_Comm, int, void*, void*), void* extra) {
        const int value = keyvals.insert(AttributeOwner::communicator, copy,
                                         reinterpret_cast<Keyval::Delete>(remove), extra);
        return *keyvals.find(value, AttributeOwner::communicator);
    }

    RankLock lock;
    Keyvals keyvals;
    char memory[4] = {};
};

TEST_F(AttributesTest, SettingAgainDeletesTheOldValue) {
    Keyval& keyval = key(nullptr, remember_delete, nullptr);
    Attributes attributes(keyvals);
    EXPECT_FALSE(attributes.set(lock, MPI_COMM_SELF, keyval, &memory[0]));
    EXPECT_FALSE(attributes.set(lock, MPI_COMM_SELF, keyval, &memory[1]));
    void* value = nullptr;
    EXPECT_TRUE(attributes.get(keyval, value));
    EXPECT_EQ(value, &memory[1]);
    EXPECT_EQ(deleted, std::vector<void*>{&memory[0]});
}

TEST_F(AttributesTest, ClearDeletesTheLatestFirst) {
    Keyval& first = key(nullptr, remember_delete, nullptr);
    Keyval& second = key(nullptr, remember_delete, nullptr);
    Attributes attributes(keyvals);
    EXPECT_FALSE(attributes.set(lock, MPI_COMM_SELF, first, &memory[0]));
    EXPECT_FALSE(attributes.set(lock, MPI_COMM_SELF, second, &memory[1]));
    EXPECT_FALSE(attributes.clear(lock, MPI_COMM_SELF));
    EXPECT_EQ(deleted, (std::vector<void*>{&memory[1], &memory[0]}));
    EXPECT_TRUE(attributes.empty());
}

TEST_F(AttributesTest, ARefusedDeleteKeepsTheAttribute) {
    Keyval& keyval = key(nullptr, refuse_delete, nullptr);
    Attributes attributes(keyvals);
    EXPECT_FALSE(attributes.set(lock, MPI_COMM_SELF, keyval, &memory[0]));
    Error error = attributes.remove(lock, MPI_COMM_SELF, keyval);
    EXPECT_EQ(error.error_class(), MPI_ERR_OTHER);
    error.drop();
    void* value = nullptr;
    EXPECT_TRUE(attributes.get(keyval, value));
}

TEST_F(AttributesTest, CopiesWhatTheFunctionsWantCopied) {
    Keyval& never = key(nullptr, nullptr, nullptr);
    Keyval& as_is = key(reinterpret_cast<Keyval::Copy>(MPI_COMM_DUP_FN), nullptr, nullptr);
    Keyval& changed = key(as_copy(copy_next), nullptr, memory);
    Keyval& unwanted = key(as_copy(copy_next), nullptr, nullptr);
    Attributes old(keyvals);
    for (Keyval* keyval : {&never, &as_is, &changed, &unwanted}) {
        EXPECT_FALSE(old.set(lock, MPI_COMM_SELF, *keyval, &memory[0]));
    }
    Attributes made(keyvals);
    EXPECT_FALSE(made.copy_from(lock, MPI_COMM_SELF, old));
    void* value = nullptr;
    EXPECT_FALSE(made.get(never, value));
    EXPECT_TRUE(made.get(as_is, value));
    EXPECT_EQ(value, &memory[0]);
    EXPECT_TRUE(made.get(changed, value));
    EXPECT_EQ(value, &memory[1]);
    EXPECT_FALSE(made.get(unwanted, value));
}

TEST_F(AttributesTest, AFreedKeyLivesWithItsAttributes) {
    Keyval& keyval = key(nullptr, remember_delete, nullptr);
    const int value = keyval.value;
    {
        Attributes attributes(keyvals);
        Attributes others(keyvals);
        EXPECT_FALSE(attributes.set(lock, MPI_COMM_SELF, keyval, &memory[0]));
        EXPECT_FALSE(others.set(lock, MPI_COMM_WORLD, keyval, &memory[1]));
        keyvals.free(keyval);
        keyvals.free(keyval); // only the program's reference, and only once
        EXPECT_EQ(keyvals.find(value, AttributeOwner::communicator), &keyval);
        EXPECT_FALSE(attributes.remove(lock, MPI_COMM_SELF, keyval));
        EXPECT_EQ(keyvals.find(value, AttributeOwner::communicator), &keyval);
        EXPECT_FALSE(others.clear(lock, MPI_COMM_WORLD));
        EXPECT_EQ(keyvals.find(value, AttributeOwner::communicator), nullptr);
    }
    EXPECT_EQ(deleted.size(), 2U);
    EXPECT_NE(keyvals.insert(AttributeOwner::communicator, nullptr, nullptr, nullptr), value);
}

TEST_F(AttributesTest, KeysBelongToOneKindOfObject) {
    const int value = keyvals.insert(AttributeOwner::datatype, nullptr, nullptr, nullptr);
    EXPECT_EQ(keyvals.find(value, AttributeOwner::communicator), nullptr);
    EXPECT_NE(keyvals.find(value, AttributeOwner::datatype), nullptr);
}

TEST_F(AttributesTest, ANumberLivesWhileAnAttributeStoresIt) {
    Keyval& first = key(nullptr, nullptr, nullptr);
    Keyval& second = key(nullptr, nullptr, nullptr);
    MPI_Aint* number = keyvals.numbers().make(5);
    {
        Attributes attributes(keyvals);
        EXPECT_FALSE(attributes.set(lock, MPI_COMM_SELF, first, number));
        EXPECT_FALSE(attributes.set(lock, MPI_COMM_SELF, second, number));
        EXPECT_FALSE(attributes.set(lock, MPI_COMM_SELF, first, number)); // by itself
        keyvals.numbers().free_unused(number);
        EXPECT_FALSE(attributes.remove(lock, MPI_COMM_SELF, first));
        EXPECT_EQ(keyvals.numbers().find(number), number);
        EXPECT_EQ(*number, 5);
    }
    EXPECT_EQ(keyvals.numbers().find(number), nullptr);
    MPI_Aint* unused = keyvals.numbers().make(6);
    keyvals.numbers().free_unused(unused);
    EXPECT_EQ(keyvals.numbers().find(unused), nullptr);
    EXPECT_EQ(keyvals.numbers().find(memory), nullptr);
}

TEST_F(AttributesTest, ADuplicateHasItsOwnNumber) {
    Keyval& keyval = key(reinterpret_cast<Keyval::Copy>(MPI_COMM_DUP_FN), nullptr, nullptr);
    Attributes old(keyvals);
    EXPECT_FALSE(old.set(lock, MPI_COMM_SELF, keyval, keyvals.numbers().make(5)));
    Attributes made(keyvals);
    EXPECT_FALSE(made.copy_from(lock, MPI_COMM_SELF, old));
    void* original = nullptr;
    void* copy = nullptr;
    EXPECT_TRUE(old.get(keyval, original));
    EXPECT_TRUE(made.get(keyval, copy));
    EXPECT_NE(copy, original);
    EXPECT_EQ(*static_cast<MPI_Aint*>(copy), 5);
}

} // namespace
} // namespace warren::comm
